/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The symbols of an event table, which are read when the first is looked for that an excerpt does
 * not name: by whichever thread does, while the others wait. From then on threads read them side by
 * side; only who adds some must be alone with the table.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "print/symbols.h"

struct symbol_store {
	symbol_source_t source;	 /* NULL: there are none */
	void *userdata;		 /* borrowed; of source */
	struct symbols *symbols; /* owned */
	struct symbols *excerpt; /* owned; NULL: there is none */
	pthread_mutex_t lock;	 /* while they are read */
	atomic_bool known;
	bool growing; /* what is not found may yet come */
};

/* NULL: no memory. */
struct symbol_store *symbol_store_new(void);
struct symbol_store *symbol_store_free(struct symbol_store *s);

/* For symbol_store_get(): they were not read before. */
void symbol_store_read(struct symbol_store *s);
/* Borrowed; NULL: there are none, or no memory for them. */
static inline const struct symbols *symbol_store_get(struct symbol_store *s)
{
	if (unlikely(!atomic_load(&s->known)))
		symbol_store_read(s);
	return s->symbols;
}

/*
 * As symbols_find(). What the excerpt tells, lines of the table in succession, does not need the
 * table read.
 */
bool symbol_store_find(struct symbol_store *s, uint64_t address, struct symbol *ret);
/* The first one counts. 0, -ENOMEM or -EFBIG, as symbols_new(). */
int symbol_store_add_excerpt(struct symbol_store *s, const char *text, size_t len);

/* More of them, as symbols_add() takes them. 0, -ENOMEM or -EFBIG. */
int symbol_store_add(struct symbol_store *s, const char *text, size_t len);
/* Those that were read so far. */
size_t symbol_store_count(const struct symbol_store *s);
