/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/printk_formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"
#include "print/expr.h"

void printk_formats_deinit(struct printk_formats *f)
{
	free(f->all);
	*f = (struct printk_formats){ 0 };
}

/* The kernel escapes only newline, tab and quote. */
static char *printk_unescape(struct arena *arena, const char *text, size_t len)
{
	char *copy = arena_alloc(arena, len + 1), *w = copy;

	if (!copy)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '\\' && i + 1 < len && strchr("nt\"", text[i + 1])) {
			c = text[++i];
			c = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c);
		}
		*w++ = c;
	}
	return copy;
}

static int printk_formats_add_one(struct printk_formats *f, struct arena *arena, uint64_t address,
				  const char *text, size_t len)
{
	char *copy;

	if (vec_reserve(f->all, f->count, f->cap, 1) < 0)
		return -ENOMEM;
	copy = printk_unescape(arena, text, len);
	if (!copy)
		return -ENOMEM;
	f->all[f->count++] = (struct printk_format){ address, copy };
	f->longest = MAX(f->longest, strlen(copy));
	return 0;
}

int printk_formats_add(struct printk_formats *f, struct arena *arena, const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		const char *stop = nl ? nl : end, *p = text + 2;
		uint64_t address = 0;

		if (stop - text > 2 && !memcmp(text, "0x", 2)) {
			for (; p < stop && strchr("0123456789abcdef", *p) && *p; p++)
				address = address << 4 |
					  (uint64_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
			if (stop - p >= 5 && !memcmp(p, " : \"", 4) && stop[-1] == '"' &&
			    printk_formats_add_one(f, arena, address, p + 4,
						   (size_t)(stop - 1 - (p + 4))) < 0)
				return -ENOMEM;
		}
		text = nl ? nl + 1 : end;
	}
	return 0;
}

static int printk_by_address(const void *a, const void *b)
{
	const struct printk_format *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

void printk_formats_sort(struct printk_formats *f)
{
	if (f->count)
		qsort(f->all, f->count, sizeof(*f->all), printk_by_address);
}

const char *printk_formats_find(const struct printk_formats *f, uint64_t address)
{
	size_t at = lower_bound(i, f->count, f->all[i].address < address);

	return at < f->count && f->all[at].address == address ? f->all[at].text : NULL;
}
