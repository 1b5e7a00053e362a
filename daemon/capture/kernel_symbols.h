/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * /proc/kallsyms to a stream: all of it once, a part read in each step, in a KALLSYMS chunk behind
 * an excerpt that spares most readers the rest; and later what modules bring.
 */
#pragma once

#include "stream/writer.h"
#include "util/buf.h"

struct kernel_symbols {
	bool hidden; /* kptr_restrict gave zeros */
	bool cut;    /* there are more than a stream holds */
	int fd;
	struct buf text;
	struct buf modules; /* the names and places of those that were loaded then */
};

#define KERNEL_SYMBOLS_INIT ((struct kernel_symbols){ .fd = -EBADF })

void kernel_symbols_deinit(struct kernel_symbols *s);
/* proc: where procfs is. 1: there is more to do; 0: all is written; or -errno. */
int kernel_symbols_step(struct kernel_symbols *s, const char *proc, struct stream_writer *w);
/* Once all is written: the symbols of modules that came after that. 0 or -errno. */
int kernel_symbols_update(struct kernel_symbols *s, const char *proc, struct stream_writer *w);
