/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * /proc/kallsyms, looked up as kernel/kallsyms.c does: the kernel's own
 * symbols lie in one sorted table, of symbols at one address the first one
 * counts; without CONFIG_KALLSYMS_ALL only text is looked up. Modules'
 * symbols come after them, in any order.
 */
#include "print/symbols.h"

#include <string.h>

struct entry {
	uint64_t address;
	uint32_t name, order; /* offset in names; place in the file */
	uint16_t module;      /* 0: the kernel */
};

struct symbols {
	struct entry *entries; /* sorted by address, then by order */
	size_t count, cap;
	char *names;
	size_t names_len;
	uint32_t *modules; /* offsets in names, by entry.module - 1 */
	size_t module_count;
	uint64_t text_start, text_end; /* where the kernel's own symbols are looked up */
	uint64_t init_start, init_end, image_end;
	bool sorted;
};

struct line {
	uint64_t address;
	const char *name, *module;
	size_t name_len, module_len;
	char type;
};

static const char *parse_hex(const char *p, const char *end, uint64_t *ret)
{
	uint64_t v = 0;

	for (; p < end; p++) {
		unsigned c = (unsigned char)*p, d = c - '0';

		if (d > 9) {
			d = (c | 0x20) - 'a' + 10;
			if (d < 10 || d > 15)
				break;
		}
		v = v << 4 | d;
	}
	*ret = v;
	return p;
}

/* "ADDRESS TYPE NAME" and perhaps "\t[MODULE]". */
static bool parse_line(const char *p, const char *end, struct line *ret)
{
	const char *tab;

	p = parse_hex(p, end, &ret->address);
	if (end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	ret->type = p[1];
	p += 3;
	tab = memchr(p, '\t', (size_t)(end - p));
	ret->name = p;
	ret->name_len = (size_t)((tab ? tab : end) - p);
	ret->module = NULL;
	ret->module_len = 0;
	if (tab && end - tab > 3 && tab[1] == '[' && end[-1] == ']') {
		ret->module = tab + 2;
		ret->module_len = (size_t)(end - 1 - ret->module);
	}
	return ret->name_len > 0;
}

static uint32_t add_name(struct symbols *s, const char *name, size_t len)
{
	uint32_t at = (uint32_t)s->names_len;

	memcpy(s->names + at, name, len);
	s->names[at + len] = '\0';
	s->names_len += len + 1;
	return at;
}

static int find_module(struct symbols *s, const struct line *l, uint16_t *ret)
{
	uint32_t *bigger;

	*ret = 0;
	if (!l->module)
		return 0;
	/* A module's symbols stand together. */
	for (size_t i = s->module_count; i-- > 0;) {
		const char *name = s->names + s->modules[i];

		if (!strncmp(name, l->module, l->module_len) && !name[l->module_len]) {
			*ret = (uint16_t)(i + 1);
			return 0;
		}
	}
	if (s->module_count == UINT16_MAX)
		return 0;
	bigger = reallocarray(s->modules, s->module_count + 1, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	s->modules = bigger;
	bigger[s->module_count++] = add_name(s, l->module, l->module_len);
	*ret = (uint16_t)s->module_count;
	return 0;
}

static bool name_is(const struct line *l, const char *name)
{
	return l->name_len == strlen(name) && !memcmp(l->name, name, l->name_len);
}

static void note_bounds(struct symbols *s, const struct line *l)
{
	if (l->module || l->name[0] != '_')
		return;
	if (name_is(l, "_stext"))
		s->text_start = l->address;
	else if (name_is(l, "_etext"))
		s->text_end = l->address;
	else if (name_is(l, "_sinittext"))
		s->init_start = l->address;
	else if (name_is(l, "_einittext"))
		s->init_end = l->address;
	else if (name_is(l, "_end"))
		s->image_end = l->address;
}

static int add_line(struct symbols *s, const struct line *l)
{
	struct entry *e;
	uint16_t module;

	if (find_module(s, l, &module) < 0)
		return -ENOMEM;
	if (s->count == s->cap) {
		size_t cap = s->cap ? s->cap * 2 : 4096;
		struct entry *entries = reallocarray(s->entries, cap, sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		s->entries = entries;
		s->cap = cap;
	}
	e = &s->entries[s->count];
	*e = (struct entry){
		.address = l->address,
		.name = add_name(s, l->name, l->name_len),
		.order = (uint32_t)s->count,
		.module = module,
	};
	if (s->count && e->address < e[-1].address)
		s->sorted = false;
	s->count++;
	note_bounds(s, l);
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static int parse(struct symbols *s, const char *text, size_t len)
{
	const char *p = text, *end = text + len;
	bool local_data = false, any = false;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		struct line l;

		if (parse_line(p, nl ? nl : end, &l) && (!l.module || l.address)) {
			any |= l.address != 0;
			/* Local data are in the table with CONFIG_KALLSYMS_ALL alone. */
			local_data |=
				!l.module && (l.type == 'd' || l.type == 'b' || l.type == 'r');
			if (add_line(s, &l) < 0)
				return -ENOMEM;
		}
		if (!nl)
			break;
		p = nl + 1;
	}
	if (!any) /* kptr_restrict shows zeros */
		s->count = 0;
	/* Below _stext there are only per-CPU symbols, at offsets from 0 (x86-64 before 6.15). */
	if (local_data && s->text_start < s->image_end) {
		s->text_end = s->image_end;
	} else if (local_data || s->text_start >= s->text_end) {
		s->text_start = 0;
		s->text_end = UINT64_MAX;
	}
	return 0;
}

int symbols_new(struct symbols **ret, const char *text, size_t len)
{
	struct symbols *s = calloc(1, sizeof(*s));
	char *names;

	if (!s)
		return -ENOMEM;
	s->sorted = true;
	/* Every name is shorter than its line; a module's stands in its first line too. */
	s->names = malloc(len + 2);
	if (!s->names || len > UINT32_MAX - 2 || parse(s, text, len) < 0) {
		symbols_free(s);
		return -ENOMEM;
	}
	if (!s->sorted)
		qsort(s->entries, s->count, sizeof(*s->entries), by_address);
	names = realloc(s->names, s->names_len + 1);
	if (names)
		s->names = names;
	*ret = s;
	return 0;
}

struct symbols *symbols_free(struct symbols *s)
{
	if (s) {
		free(s->entries);
		free(s->names);
		free(s->modules);
		free(s);
	}
	return NULL;
}

/* The last entry at or below address; NULL: none. */
static const struct entry *floor_entry(const struct symbols *s, uint64_t address)
{
	const struct entry *base = s->entries;
	size_t n = s->count;

	if (!n || address < base->address)
		return NULL;
	while (n > 1) {
		size_t half = n / 2;

		base = base[half].address <= address ? base + half : base;
		n -= half;
	}
	return base;
}

static bool in_kernel(const struct symbols *s, uint64_t address)
{
	return (address >= s->text_start && address < s->text_end) ||
	       (address >= s->init_start && address < s->init_end);
}

/* The address where a symbol ends: the next one's, of the same module. */
static uint64_t end_of(const struct symbols *s, const struct entry *e)
{
	const struct entry *last = s->entries + s->count;

	for (const struct entry *next = e + 1; next < last; next++) {
		if (next->address == e->address)
			continue;
		if (next->module == e->module)
			return next->address;
		break;
	}
	/* The end of the section is not told: it is a whole page. */
	return (e->address | 4095) + 1;
}

bool symbols_find(const struct symbols *s, uint64_t address, struct symbol *ret)
{
	const struct entry *e = s ? floor_entry(s, address) : NULL;
	uint64_t end;

	if (!e)
		return false;
	while (e > s->entries && e[-1].address == e->address)
		e--;
	if (!e->module && !in_kernel(s, address))
		return false;
	end = end_of(s, e);
	if (e->module && address >= end)
		return false;
	*ret = (struct symbol){
		.name = s->names + e->name,
		.module = e->module ? s->names + s->modules[e->module - 1] : NULL,
		.address = e->address,
		.size = end - e->address,
	};
	return true;
}
