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
	const char *module; /* NULL: the kernel */
	uint64_t address;
	uint64_t size; /* distance to the next symbol, as in the kernel */
};

/* Most symbols of one text. A kernel with all its modules has a fifth of that. */
#define SYMBOLS_MAX (2U << 20)
/*
 * Parses and copies the text of /proc/kallsyms. An empty or all-zero text gives an empty table.
 * Returns 0, -ENOMEM, or -EFBIG for more than SYMBOLS_MAX.
 */
int symbols_new(struct symbols **ret, const char *text, size_t len);
/*
 * Adds modules' symbols that came later, in the same form. Where both have an address, the first
 * one counts.
 */
int symbols_add(struct symbols *s, const char *text, size_t len);
/*
 * Like symbols_add(), without a copy: owns the text from then on and empties the buffer, also on
 * failure. *list may be NULL.
 */
int symbols_take(struct symbols **list, struct buf *text);
struct symbols *symbols_free(struct symbols *s);
DEFINE_CLEANUP_FUNC(struct symbols *, symbols_free);
size_t symbols_count(const struct symbols *s);
/* True and ret filled if a symbol contains address. s may be NULL: false. */
bool symbols_find(const struct symbols *s, uint64_t address, struct symbol *ret);
/* Like symbols_find(), but ignores the last symbol, whose end is unknown. */
bool symbols_find_between(const struct symbols *s, uint64_t address, struct symbol *ret);
/* The address range of the kernel's interrupt code. False: unknown, or s is NULL. */
bool symbols_irq_entries(const struct symbols *s, uint64_t *ret_start, uint64_t *ret_end);

/* Reads the symbols on demand. The caller owns them. NULL: none. */
typedef struct symbols *(*symbol_source_t)(void *userdata);
