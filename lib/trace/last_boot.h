/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ring that was filled before the machine started anew has addresses of that time; the stream has
 * the symbols of now. The instance's last_boot_info says where the kernel was:
 *
 *	Linux 6.12:	"text delta:\tN", decimal: now minus then
 *	Linux 6.15:	"ADDRESS\t[kernel]", hexadecimal: of _text, then a line for each module
 *
 * Everything that is not known to have moved by a certain distance loses its name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "proto/capture.pb-c.h"

struct moved_module {
	const char *name; /* borrowed from the message; not terminated */
	size_t name_len;
	uint64_t by;
};

struct last_boot {
	bool known;		      /* where the kernel was */
	uint64_t by;		      /* an address of now minus that of then, modulo 2^64 */
	uint64_t text, end;	      /* the kernel now; 0: unknown */
	struct moved_module *modules; /* owned; in order of name */
	size_t module_count, module_cap;
	struct moved_module *gone; /* owned; not loaded now; in order of name */
	size_t gone_count, gone_cap;
	size_t listed; /* lines that named modules */
};

/* Borrows message. Lines that make no sense are skipped. 0 or -ENOMEM. */
int last_boot_read(struct last_boot *ret, const Traced__Capture__LastBoot *message);
void last_boot_deinit(struct last_boot *b);

/* Moves the addresses of kallsyms' lines back, in place. Lines without a known place go. */
void last_boot_move_symbols(const struct last_boot *b, struct buf *text);
/* The same for lines of printk_formats ("0xADDRESS : ..."). Modules' lines go. */
void last_boot_move_printk(const struct last_boot *b, struct buf *text);
