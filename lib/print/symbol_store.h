/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An event table's symbols. The first look-up that the excerpt cannot answer reads them, in the
 * thread that makes it; other threads wait. After that threads read without a lock. A thread that
 * adds symbols needs the table to itself.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "print/symbols.h"

struct symbol_store {
	symbol_source_t source;	 /* NULL: no symbols */
	void *userdata;		 /* passed to source */
	struct symbols *symbols; /* owned */
	struct symbols *excerpt; /* owned; or NULL */
	pthread_mutex_t lock;	 /* held while the symbols are read */
	atomic_bool known;
	bool growing; /* more symbols may come: do not cache misses */
};

/* NULL: out of memory. */
struct symbol_store *symbol_store_new(void);
struct symbol_store *symbol_store_free(struct symbol_store *s);

/* Slow path of symbol_store_get(). */
void symbol_store_read(struct symbol_store *s);
/* Borrowed. NULL: no symbols, or out of memory. */
static inline const struct symbols *symbol_store_get(struct symbol_store *s)
{
	if (unlikely(!atomic_load(&s->known)))
		symbol_store_read(s);
	return s->symbols;
}

/*
 * Like symbols_find(). Addresses in the excerpt, which holds consecutive lines of the table, do not
 * read the table.
 */
bool symbol_store_find(struct symbol_store *s, uint64_t address, struct symbol *ret);
/* Only the first excerpt counts. Returns 0, -ENOMEM or -EFBIG, as symbols_new(). */
int symbol_store_add_excerpt(struct symbol_store *s, const char *text, size_t len);

/* Adds symbols as symbols_add() does. Returns 0, -ENOMEM or -EFBIG. */
int symbol_store_add(struct symbol_store *s, const char *text, size_t len);
/* The number of symbols read so far. */
size_t symbol_store_count(const struct symbol_store *s);
