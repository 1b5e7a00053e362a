/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/ident.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

void ident_set_deinit(struct ident_set *set)
{
	for (size_t i = 0; i < set->cap; i++)
		free(set->names[i]);
	free(set->names);
	*set = (struct ident_set){ 0 };
}

static char **slot_of(const struct ident_set *set, const char *name, size_t len)
{
	uint64_t h = 0xcbf29ce484222325;
	size_t i;

	for (i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 0x100000001b3;
	for (i = h & (set->cap - 1); set->names[i]; i = (i + 1) & (set->cap - 1))
		if (!strncmp(set->names[i], name, len) && !set->names[i][len])
			break;
	return &set->names[i];
}

static int add(struct ident_set *set, const char *name, size_t len)
{
	char **slot;

	if ((set->count + 1) * 2 > set->cap) {
		struct ident_set bigger = { .cap = set->cap ? set->cap * 2 : 256 };

		bigger.names = calloc(bigger.cap, sizeof(*bigger.names));
		if (!bigger.names)
			return -ENOMEM;
		for (size_t i = 0; i < set->cap; i++)
			if (set->names[i])
				*slot_of(&bigger, set->names[i], strlen(set->names[i])) =
					set->names[i];
		free(set->names);
		set->names = bigger.names;
		set->cap = bigger.cap;
	}
	slot = slot_of(set, name, len);
	if (*slot)
		return 0;
	*slot = strndup(name, len);
	if (!*slot)
		return -ENOMEM;
	set->count++;
	return 0;
}

static bool is_start(char c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_part(char c)
{
	return is_start(c) || (c >= '0' && c <= '9');
}

static bool is_word(const char *p, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(p, word, len);
}

/* Behind a literal that begins at p. */
static const char *skip_literal(const char *p, const char *end)
{
	char quote = *p++;

	while (p < end && *p != quote)
		p += *p == '\\' && p + 1 < end ? 2 : 1;
	return p < end ? p + 1 : end;
}

static bool is_member(const char *start, const char *p)
{
	return (p - start >= 2 && p[-1] == '>' && p[-2] == '-') || (p > start && p[-1] == '.');
}

static int add_word(struct ident_set *set, const char *p, size_t len, const char *end)
{
	const char *next = p + len;

	while (next < end && *next == ' ')
		next++;
	if (is_word(p, len, "jiffies_to_msecs"))
		return add(set, "HZ", 2);
	if (is_word(p, len, "REC") || (next < end && *next == '('))
		return 0;
	return add(set, p, len);
}

int ident_set_add_format(struct ident_set *set, const char *text, size_t len)
{
	const char *start = memmem(text, len, "\nprint fmt:", 11), *end = text + len, *p;

	if (!start)
		return 0;
	start += 11;
	for (p = start; p < end;) {
		const char *word = p;

		if (*p == '"' || *p == '\'') {
			p = skip_literal(p, end);
			continue;
		}
		while (p < end && is_part(*p))
			p++;
		if (p == word) {
			p++;
			continue;
		}
		if (is_start(*word) && !is_member(start, word) &&
		    add_word(set, word, (size_t)(p - word), end) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **ident_set_sorted(const struct ident_set *set)
{
	const char **names = set->count ? calloc(set->count, sizeof(*names)) : NULL;
	size_t n = 0;

	if (!names)
		return NULL;
	for (size_t i = 0; i < set->cap; i++)
		if (set->names[i])
			names[n++] = set->names[i];
	qsort(names, n, sizeof(*names), by_name);
	return names;
}
