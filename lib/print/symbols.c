/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Looks up /proc/kallsyms as kernel/kallsyms.c does. The kernel's own symbols are one sorted table;
 * the first symbol at an address counts. Without CONFIG_KALLSYMS_ALL only text is looked up.
 * Modules' symbols come after them, unsorted.
 */
#include "print/symbols.h"

#include <byteswap.h>
#include <string.h>

#include "base/swar.h"
#include "base/vec.h"

/* Sorted by address; at one address in file order. */
struct symbols {
	uint64_t *addresses;
	uint32_t *names;   /* offsets into text */
	uint16_t *modules; /* 0: the kernel; n: module_names[n - 1] */
	size_t count, cap;
	size_t ordered; /* while filling: length of the sorted first part */
	char *text;
	size_t text_len;
	uint32_t *module_names; /* offsets into text */
	size_t module_count;
	uint64_t text_start, text_end; /* range of look-ups in the kernel itself */
	uint64_t init_start, init_end, image_end;
	uint64_t irq_start, irq_end;
	struct symbols *later; /* owned; or NULL */
};

struct line {
	uint64_t address;
	const char *name, *module;
	size_t name_len, module_len;
	char type;
};

/* Parses eight digits at once. False: some character is no digit. */
static bool symbols_parse_hex8(const char *p, uint32_t *ret)
{
	const uint64_t high = EACH_BYTE(0x80);
	uint64_t v = load_bytes8(p), digit, letter;

	/* Each sum sets a byte's high bit from the range's first character on. */
	digit = (v + EACH_BYTE(0x80 - '0')) & ~(v + EACH_BYTE(0x7f - '9'));
	letter = (v + EACH_BYTE(0x80 - 'a')) & ~(v + EACH_BYTE(0x7f - 'f'));
	if ((v & high) || ((digit | letter) & high) != high)
		return false;
	v = (v & EACH_BYTE(0x0f)) + (letter >> 7 & EACH_BYTE(1)) * 9;
	/* Packs the digits into bytes; the first is the highest. */
	v = (v << 4 | v >> 8) & UINT64_C(0x00ff00ff00ff00ff);
	v = (v | v >> 8) & UINT64_C(0x0000ffff0000ffff);
	*ret = bswap_32((uint32_t)(v | v >> 16));
	return true;
}

static const char *symbols_parse_hex(const char *p, const char *end, uint64_t *ret)
{
	uint32_t high, low;
	uint64_t v = 0;

	/* 64-bit kernels write 16 digits. */
	if (end - p > 16 && p[16] == ' ' && symbols_parse_hex8(p, &high) &&
	    symbols_parse_hex8(p + 8, &low)) {
		*ret = (uint64_t)high << 32 | low;
		return p + 16;
	}
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

/* Parses "ADDRESS TYPE NAME", with "\t[MODULE]" for modules. */
static bool symbols_parse_line(const char *p, const char *end, struct line *ret)
{
	const char *tab = NULL;

	p = symbols_parse_hex(p, end, &ret->address);
	if (end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	ret->type = p[1];
	p += 3;
	if (end[-1] == ']')
		tab = memchr(p, '\t', (size_t)(end - p));
	ret->name = p;
	ret->name_len = (size_t)((tab ? tab : end) - p);
	ret->module = NULL;
	ret->module_len = 0;
	if (tab && end - tab > 3 && tab[1] == '[') {
		ret->module = tab + 2;
		ret->module_len = (size_t)(end - 1 - ret->module);
		/*
		 * ftrace and kprobes trampolines are listed, but the kernel does not use these
		 * names.
		 */
		if (ret->module_len > 11 && !memcmp(ret->module, "__builtin__", 11))
			return false;
	}
	return ret->name_len > 0;
}

/* Most names are shorter: a copy of constant size is fast. */
#define NAME_USUAL 32

/*
 * Names move down within the text that is being parsed. Nothing is overwritten before it is read:
 * at least 3 characters come before a name, and a name and a module's name add 2 terminators. The
 * text has NAME_USUAL spare bytes at its end, as the copy may read that far.
 */
static uint32_t symbols_add_name(struct symbols *s, const char *name, size_t len)
{
	uint32_t at = (uint32_t)s->text_len;
	char *to = s->text + at;

	if (likely(len <= NAME_USUAL && name - to >= NAME_USUAL))
		memcpy(to, name, NAME_USUAL);
	else
		memmove(to, name, len);
	to[len] = '\0';
	s->text_len += len + 1;
	return at;
}

/* Only the last modules are searched: a module's symbols are adjacent. */
#define MODULES_NEAR 64

static int symbols_find_module(struct symbols *s, const struct line *l, uint16_t *ret)
{
	*ret = 0;
	if (!l->module)
		return 0;
	for (size_t i = s->module_count; i-- > 0 && s->module_count - i <= MODULES_NEAR;) {
		const char *name = s->text + s->module_names[i];

		if (!strncmp(name, l->module, l->module_len) && !name[l->module_len]) {
			*ret = (uint16_t)(i + 1);
			return 0;
		}
	}
	if (s->module_count == UINT16_MAX)
		return 0;
	if (vec_reserve_exact(s->module_names, s->module_count, 1) < 0)
		return -ENOMEM;
	s->module_names[s->module_count++] = symbols_add_name(s, l->module, l->module_len);
	*ret = (uint16_t)s->module_count;
	return 0;
}

static bool line_name_is(const struct line *l, const char *name)
{
	return l->name_len == strlen(name) && !memcmp(l->name, name, l->name_len);
}

static void symbols_note_bounds(struct symbols *s, const struct line *l)
{
	if (l->module || l->name[0] != '_')
		return;
	if (line_name_is(l, "_stext"))
		s->text_start = l->address;
	else if (line_name_is(l, "_etext"))
		s->text_end = l->address;
	else if (line_name_is(l, "_sinittext"))
		s->init_start = l->address;
	else if (line_name_is(l, "_einittext"))
		s->init_end = l->address;
	else if (line_name_is(l, "_end"))
		s->image_end = l->address;
	else if (line_name_is(l, "__irqentry_text_start"))
		s->irq_start = l->address;
	else if (line_name_is(l, "__irqentry_text_end"))
		s->irq_end = l->address;
}

/* Makes room for exactly extra more symbols; the three arrays share one cap. 0: shrinks them. */
static int symbols_reserve(struct symbols *s, size_t extra)
{
	if (vec_reserve_exact(s->addresses, s->count, extra) < 0 ||
	    vec_reserve_exact(s->names, s->count, extra) < 0 ||
	    vec_reserve_exact(s->modules, s->count, extra) < 0)
		return -ENOMEM;
	s->cap = s->count + extra;
	return 0;
}

static int symbols_add_line(struct symbols *s, const struct line *l)
{
	size_t at = s->count;

	if (unlikely(at == SYMBOLS_MAX))
		return -EFBIG;
	if (at == s->cap && symbols_reserve(s, at / 2) < 0)
		return -ENOMEM;
	symbols_note_bounds(s, l);
	/* The module's name comes later in the line, so it is still intact. */
	s->names[at] = symbols_add_name(s, l->name, l->name_len);
	if (symbols_find_module(s, l, &s->modules[at]) < 0)
		return -ENOMEM;
	s->addresses[at] = l->address;
	if (s->ordered == at && (!at || l->address >= s->addresses[at - 1]))
		s->ordered++;
	s->count++;
	return 0;
}

struct entry {
	uint64_t address;
	uint32_t name; /* increases in file order */
	uint16_t module;
};

static int symbols_by_address(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->name < y->name ? -1 : 1;
}

/* The kernel's own symbols are sorted already. Modules' are sorted and merged in from the end. */
static int symbols_sort(struct symbols *s)
{
	size_t from = s->ordered, rest = s->count - from, to = s->count;
	struct entry *others;

	if (!rest)
		return 0;
	others = calloc(rest, sizeof(*others));
	if (!others)
		return -ENOMEM;
	for (size_t i = 0; i < rest; i++)
		others[i] = (struct entry){ s->addresses[from + i], s->names[from + i],
					    s->modules[from + i] };
	qsort(others, rest, sizeof(*others), symbols_by_address);
	while (rest) {
		const struct entry *e = &others[rest - 1];

		to--;
		if (from && s->addresses[from - 1] > e->address) {
			from--;
			s->addresses[to] = s->addresses[from];
			s->names[to] = s->names[from];
			s->modules[to] = s->modules[from];
		} else {
			s->addresses[to] = e->address;
			s->names[to] = e->name;
			s->modules[to] = e->module;
			rest--;
		}
	}
	free(others);
	return 0;
}

/* Turns s->text from lines into names. */
static int symbols_parse(struct symbols *s, size_t len)
{
	const char *p = s->text, *end = p + len;
	bool local_data = false, any = false;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		struct line l;

		if (symbols_parse_line(p, nl ? nl : end, &l) && (!l.module || l.address)) {
			int r = symbols_add_line(s, &l);

			if (r < 0)
				return r;
			any |= l.address != 0;
			/* Only CONFIG_KALLSYMS_ALL lists local data. */
			local_data |=
				!l.module && (l.type == 'd' || l.type == 'b' || l.type == 'r');
		}
		if (!nl)
			break;
		p = nl + 1;
	}
	if (!any) /* kptr_restrict shows zeros */
		s->count = s->ordered = 0;
	/* Below _stext there are only per-CPU symbols, at offsets from 0 (x86-64 before 6.15). */
	if (local_data && s->text_start < s->image_end) {
		s->text_end = s->image_end;
	} else if (local_data || s->text_start >= s->text_end) {
		s->text_start = 0;
		s->text_end = UINT64_MAX;
	}
	return 0;
}

/* Usual length of a line. */
#define LINE_SIZE 40

int symbols_take(struct symbols **list, struct buf *text)
{
	struct symbols *s = calloc(1, sizeof(*s));
	size_t len = text->len;
	char *shrunk;
	int r;

	if (!s) {
		buf_deinit(text);
		return -ENOMEM;
	}
	r = len > UINT32_MAX - NAME_USUAL ? -EFBIG : 0;
	if (r == 0 && !buf_reserve(text, NAME_USUAL))
		r = -ENOMEM;
	s->text = text->data;
	*text = BUF_INIT;
	if (r == 0)
		r = symbols_reserve(s, len / LINE_SIZE + 16);
	if (r == 0)
		r = symbols_parse(s, len);
	if (r == 0)
		r = symbols_sort(s);
	if (r == 0)
		r = symbols_reserve(s, 0);
	if (r < 0) {
		symbols_free(s);
		return r;
	}
	shrunk = realloc(s->text, s->text_len + 1);
	if (shrunk)
		s->text = shrunk;
	while (*list)
		list = &(*list)->later;
	*list = s;
	return 0;
}

static int symbols_take_copy(struct symbols **list, const char *text, size_t len)
{
	_cleanup_buf_ struct buf own = BUF_INIT;

	if (!buf_reserve(&own, len + NAME_USUAL))
		return -ENOMEM;
	buf_append(&own, text, len);
	return symbols_take(list, &own);
}

int symbols_new(struct symbols **ret, const char *text, size_t len)
{
	struct symbols *s = NULL;
	int r = symbols_take_copy(&s, text, len);

	if (r == 0)
		*ret = s;
	return r;
}

int symbols_add(struct symbols *s, const char *text, size_t len)
{
	return symbols_take_copy(&s->later, text, len);
}

struct symbols *symbols_free(struct symbols *s)
{
	if (s) {
		symbols_free(s->later);
		free(s->addresses);
		free(s->names);
		free(s->modules);
		free(s->text);
		free(s->module_names);
		free(s);
	}
	return NULL;
}

/*
 * Index of the last symbol at or below address; SIZE_MAX: none. lower_bound() would branch on each
 * comparison; addresses come in random order, so half of these branches would be mispredicted.
 */
static size_t symbols_floor(const struct symbols *s, uint64_t address)
{
	const uint64_t *base = s->addresses;
	size_t n = s->count;

	if (!n || address < *base)
		return SIZE_MAX;
	while (n > 1) {
		size_t half = n / 2;

		base = base[half] <= address ? base + half : base;
		n -= half;
	}
	return (size_t)(base - s->addresses);
}

static bool symbols_in_kernel(const struct symbols *s, uint64_t address)
{
	return (address >= s->text_start && address < s->text_end) ||
	       (address >= s->init_start && address < s->init_end);
}

/* Index of the first symbol at the address of symbol `last`. */
static size_t symbols_first(const struct symbols *s, size_t last)
{
	uint64_t address = s->addresses[last];

	if (likely(!last || s->addresses[last - 1] != address))
		return last;
	/* SIZE_MAX + 1 is 0: the first symbol of all. */
	return address ? symbols_floor(s, address - 1) + 1 : 0;
}

/*
 * End address of a symbol: the next symbol's, in the same module. last: the last one at its
 * address.
 */
static uint64_t symbols_end(const struct symbols *s, size_t at, size_t last)
{
	uint64_t address = s->addresses[at];

	if (last + 1 < s->count && s->modules[last + 1] == s->modules[at])
		return s->addresses[last + 1];
	/* The section's end is unknown: assume the end of the page. */
	return (address | 4095) + 1;
}

static bool symbols_find_one(const struct symbols *s, uint64_t address, struct symbol *ret)
{
	size_t last = symbols_floor(s, address), at;
	uint16_t module;
	uint64_t end;

	if (last == SIZE_MAX)
		return false;
	at = symbols_first(s, last);
	module = s->modules[at];
	if (!module && !symbols_in_kernel(s, address))
		return false;
	end = symbols_end(s, at, last);
	if (module && address >= end)
		return false;
	*ret = (struct symbol){
		.name = s->text + s->names[at],
		.module = module ? s->text + s->module_names[module - 1] : NULL,
		.address = s->addresses[at],
		.size = end - s->addresses[at],
	};
	return true;
}

bool symbols_find(const struct symbols *s, uint64_t address, struct symbol *ret)
{
	for (; s; s = s->later)
		if (symbols_find_one(s, address, ret))
			return true;
	return false;
}

bool symbols_find_between(const struct symbols *s, uint64_t address, struct symbol *ret)
{
	return s->count && address < s->addresses[s->count - 1] && symbols_find(s, address, ret);
}

bool symbols_irq_entries(const struct symbols *s, uint64_t *ret_start, uint64_t *ret_end)
{
	if (!s || !s->irq_start || s->irq_start >= s->irq_end)
		return false;
	*ret_start = s->irq_start;
	*ret_end = s->irq_end;
	return true;
}

size_t symbols_count(const struct symbols *s)
{
	return s ? s->count : 0;
}
