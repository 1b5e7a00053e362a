/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/last_boot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Lines that name modules; kernels have a few hundred. */
#define MODULES_MAX 4096
/* A kernel's own addresses are in the upper half. */
#define KERNEL_HALF (UINT64_C(1) << 63)

struct line {
	const char *p, *end;
};

static bool next_line(struct line *text, struct line *ret)
{
	const char *nl;

	if (text->p == text->end)
		return false;
	nl = memchr(text->p, '\n', (size_t)(text->end - text->p));
	*ret = (struct line){ text->p, nl ?: text->end };
	text->p = nl ? nl + 1 : text->end;
	return true;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Takes a number from the line's begin. False: none, or more than 64 bits. */
static bool take_number(struct line *l, unsigned base, uint64_t *ret)
{
	const char *begin = l->p;
	uint64_t v = 0;

	for (; l->p < l->end && (unsigned)digit_of(*l->p) < base; l->p++)
		if (__builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, (unsigned)digit_of(*l->p), &v))
			return false;
	*ret = v;
	return l->p > begin;
}

static bool take_word(struct line *l, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(l->end - l->p) < len || memcmp(l->p, word, len) != 0)
		return false;
	l->p += len;
	return true;
}

/* "-123" */
static bool take_delta(struct line *l, uint64_t *ret)
{
	bool negative = take_word(l, "-");
	uint64_t v;

	if (!take_number(l, 10, &v) || l->p != l->end)
		return false;
	*ret = negative ? -v : v;
	return true;
}

/*
 * The address that /proc/modules has for a module: "NAME SIZE REFS DEPS STATE 0xADDRESS". Returns
 * 1; 0: its address is hidden; -ENOENT: it is not loaded.
 */
static int find_module(const ProtobufCBinaryData *modules, const struct line *name, uint64_t *ret)
{
	struct line text = { (const char *)modules->data,
			     (const char *)modules->data + modules->len };
	size_t len = (size_t)(name->end - name->p);
	struct line l;

	while (modules->len && next_line(&text, &l)) {
		if ((size_t)(l.end - l.p) <= len || memcmp(l.p, name->p, len) != 0 ||
		    l.p[len] != ' ')
			continue;
		for (l.p += len; l.p < l.end; l.p++)
			if (take_word(&l, " 0x"))
				return take_number(&l, 16, ret) && *ret >= KERNEL_HALF;
		return 0;
	}
	return -ENOENT;
}

static int last_boot_add_module(struct last_boot *b, const Traced__Capture__LastBoot *message,
				const struct line *name, uint64_t then)
{
	struct moved_module m = { name->p, (size_t)(name->end - name->p), 0 };
	uint64_t now;
	int r;

	if (b->listed >= MODULES_MAX || !m.name_len)
		return 0;
	b->listed++;
	r = find_module(&message->modules, name, &now);
	if (r < 0)
		return vec_push(b->gone, b->gone_count, b->gone_cap, m);
	m.by = r > 0 ? now - then : 0;
	return r > 0 ? vec_push(b->modules, b->module_count, b->module_cap, m) : 0;
}

/* "ADDRESS\t[kernel]" or "ADDRESS\tMODULE" */
static int last_boot_read_place(struct last_boot *b, const Traced__Capture__LastBoot *message,
				struct line l)
{
	uint64_t then;

	if (!take_number(&l, 16, &then) || !take_word(&l, "\t"))
		return 0;
	/* Some 6.14 have the distance to the place that the kernel was linked for. */
	if (then < KERNEL_HALF)
		return 0;
	if (!take_word(&l, "[kernel]"))
		return last_boot_add_module(b, message, &l, then);
	if (l.p == l.end && message->text && !b->known) {
		b->known = true;
		b->by = message->text - then;
	}
	return 0;
}

static int compare_names(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int r = memcmp(a, b, MIN(a_len, b_len));

	return r ?: (a_len > b_len) - (a_len < b_len);
}

static int compare_modules(const void *a, const void *b)
{
	const struct moved_module *x = a, *y = b;

	return compare_names(x->name, x->name_len, y->name, y->name_len);
}

/* The later line comes first. */
static int compare_lines(const void *a, const void *b)
{
	const struct moved_module *x = a, *y = b;
	int r = compare_modules(a, b);

	return r ? r : (x->name < y->name) - (x->name > y->name);
}

/* Sorts by name. A module that came again has a line for each of its places: the last one stays. */
static void sort_modules(struct moved_module *modules, size_t *count)
{
	size_t kept = 0;

	if (*count)
		qsort(modules, *count, sizeof(*modules), compare_lines);
	for (size_t i = 0; i < *count; i++)
		if (!kept || compare_modules(&modules[kept - 1], &modules[i]) != 0)
			modules[kept++] = modules[i];
	*count = kept;
}

int last_boot_read(struct last_boot *ret, const Traced__Capture__LastBoot *message)
{
	struct last_boot b = { .text = message->text, .end = message->end };
	const char *info = message->info.len ? (const char *)message->info.data : "";
	struct line text = { info, info + message->info.len };
	struct line l;
	int r = 0;

	while (r == 0 && message->info.len && next_line(&text, &l)) {
		if (!take_word(&l, "text delta:\t"))
			r = last_boot_read_place(&b, message, l);
		else if (!b.known)
			b.known = take_delta(&l, &b.by);
	}
	if (r < 0) {
		last_boot_deinit(&b);
		return r;
	}
	sort_modules(b.modules, &b.module_count);
	sort_modules(b.gone, &b.gone_count);
	*ret = b;
	return 0;
}

void last_boot_deinit(struct last_boot *b)
{
	free(b->modules);
	free(b->gone);
	*b = (struct last_boot){ 0 };
}

static const struct moved_module *last_boot_find(const struct last_boot *b, const char *name,
						 size_t len)
{
	size_t from = 0, to = b->module_count;

	while (from < to) {
		size_t at = from + (to - from) / 2;
		int r = compare_names(b->modules[at].name, b->modules[at].name_len, name, len);

		if (r == 0)
			return &b->modules[at];
		if (r < 0)
			from = at + 1;
		else
			to = at;
	}
	return NULL;
}

/* Only a module's code is known to have moved as the module's begin did. */
static bool is_code(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/* "ADDRESS TYPE NAME", "\t[MODULE]": how far it moved. False: unknown. */
static bool last_boot_of_symbol(const struct last_boot *b, const struct line *l, uint64_t address,
				uint64_t *ret)
{
	const char *rest = l->p, *tab;
	const struct moved_module *m;

	if (l->end - rest < 4 || rest[0] != ' ' || rest[2] != ' ')
		return false;
	tab = l->end[-1] == ']' ? memchr(rest, '\t', (size_t)(l->end - rest)) : NULL;
	if (!tab) {
		*ret = address >= KERNEL_HALF ? b->by : 0;
		return b->known;
	}
	if (l->end - tab < 4 || tab[1] != '[' || !is_code(rest[1]))
		return false;
	m = last_boot_find(b, tab + 2, (size_t)(l->end - tab) - 3);
	if (m)
		*ret = m->by;
	return m != NULL;
}

/* Writes as many digits as were there. */
static void put_number(char *to, size_t digits, uint64_t v)
{
	while (digits-- > 0) {
		to[digits] = "0123456789abcdef"[v & 15];
		v >>= 4;
	}
}

/* Keeps the line, with another address, behind those that were kept. */
static size_t keep_line(struct buf *text, size_t kept, const char *line, const struct line *rest,
			size_t digits_at, uint64_t address)
{
	size_t digits = (size_t)(rest->p - line) - digits_at;
	size_t len = (size_t)(rest->end - line);

	memmove(text->data + kept, line, len);
	put_number(text->data + kept + digits_at, digits, address);
	text->data[kept + len] = '\n';
	return kept + len + 1;
}

void last_boot_move_symbols(const struct last_boot *b, struct buf *text)
{
	struct line all = { text->data, text->data + text->len }, l;
	uint64_t address, by;
	size_t kept = 0;

	/* A last line without its end is torn. */
	while (text->len && next_line(&all, &l) && l.end < text->data + text->len) {
		const char *line = l.p;

		if (take_number(&l, 16, &address) && last_boot_of_symbol(b, &l, address, &by))
			kept = keep_line(text, kept, line, &l, 0, address - by);
	}
	text->len = kept;
}

void last_boot_move_printk(const struct last_boot *b, struct buf *text)
{
	struct line all = { text->data, text->data + text->len }, l;
	uint64_t address;
	size_t kept = 0;

	while (b->known && text->len && next_line(&all, &l) && l.end < text->data + text->len) {
		const char *line = l.p;

		if (take_word(&l, "0x") && take_number(&l, 16, &address) && address >= b->text &&
		    address < b->end)
			kept = keep_line(text, kept, line, &l, 2, address - b->by);
	}
	text->len = kept;
}
