/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/symbol_store.h"

struct symbol_store *symbol_store_new(void)
{
	struct symbol_store *s = calloc(1, sizeof(*s));

	if (s)
		pthread_mutex_init(&s->lock, NULL);
	return s;
}

struct symbol_store *symbol_store_free(struct symbol_store *s)
{
	if (!s)
		return NULL;
	symbols_free(s->symbols);
	symbols_free(s->excerpt);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}

void symbol_store_read(struct symbol_store *s)
{
	pthread_mutex_lock(&s->lock);
	if (!atomic_load(&s->known)) {
		s->symbols = s->source ? s->source(s->userdata) : NULL;
		atomic_store(&s->known, true);
	}
	pthread_mutex_unlock(&s->lock);
}

bool symbol_store_find(struct symbol_store *s, uint64_t address, struct symbol *ret)
{
	if (s->excerpt && symbols_find_between(s->excerpt, address, ret))
		return true;
	return symbols_find(symbol_store_get(s), address, ret);
}

int symbol_store_add_excerpt(struct symbol_store *s, const char *text, size_t len)
{
	return s->excerpt ? 0 : symbols_new(&s->excerpt, text, len);
}

int symbol_store_add(struct symbol_store *s, const char *text, size_t len)
{
	return symbol_store_get(s) ? symbols_add(s->symbols, text, len)
				   : symbols_new(&s->symbols, text, len);
}

size_t symbol_store_count(const struct symbol_store *s)
{
	return atomic_load(&s->known) ? symbols_count(s->symbols) : 0;
}
