/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The recorded machine's kernel symbols. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"

struct symbols;

struct symbol {
	const char *name;   /* terminated; borrowed */
	const char *module; /* NULL: the kernel itself */
	uint64_t address;
	uint64_t size; /* distance to the next symbol, as the kernel computes it */
};

/* Of one text: a kernel with all its modules has a fifth. */
#define SYMBOLS_MAX (2U << 20)
/*
 * text: of /proc/kallsyms; need not outlive the call. Empty or all-zero: a table without symbols.
 * 0, -ENOMEM, or -EFBIG: it has more than SYMBOLS_MAX.
 */
int symbols_new(struct symbols **ret, const char *text, size_t len);
/*
 * Those of modules that came later: a text of the same form. Where both tell of an address,
 * the first one counts.
 */
int symbols_add(struct symbols *s, const char *text, size_t len);
/*
 * The same without a copy: text is taken over, and empty then, also where this fails. They become
 * the last of *list, which may be NULL, as symbols_add() adds them.
 */
int symbols_take(struct symbols **list, struct buf *text);
struct symbols *symbols_free(struct symbols *s);
DEFINE_CLEANUP_FUNC(struct symbols *, symbols_free);
size_t symbols_count(const struct symbols *s);
/* True and ret filled if address lies in a symbol. s NULL: false. */
bool symbols_find(const struct symbols *s, uint64_t address, struct symbol *ret);
/* The same, but not in the last symbol: s does not tell where that one ends. */
bool symbols_find_between(const struct symbols *s, uint64_t address, struct symbol *ret);
/* Where the kernel's code for interrupts begins, and ends. Not told, or s NULL: false. */
bool symbols_irq_entries(const struct symbols *s, uint64_t *ret_start, uint64_t *ret_end);

/* Reads them when they are wanted: they are the caller's; NULL: there are none. */
typedef struct symbols *(*symbol_source_t)(void *userdata);
