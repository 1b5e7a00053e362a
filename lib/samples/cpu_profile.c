/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "samples/cpu_profile.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <xxhash.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/search.h"
#include "base/secret_hash.h"
#include "base/table.h"
#include "base/vec.h"

/* Slots of the header after the first two; gperftools writes 3. */
#define HEADER_MIN 3
#define HEADER_MAX 1024

struct stack_slot {
	uint32_t hash, number; /* the stack's index + 1; 0: free */
};
DECLARE_TABLE(stack_slots, struct stack_slot);

struct parser {
	struct cpu_profile *p;
	const uint8_t *data;
	size_t len, at;
	struct stack_slots known;
	size_t stack_cap, mapping_cap;
	struct buf build, path;
};

static uint64_t load_slot(const struct cpu_profile *p, const uint8_t *at)
{
	return p->slot == 8 ? load_u64(at, p->big_endian) : load_u32(at, p->big_endian);
}

uint64_t cpu_profile_pc(const struct cpu_profile *p, const struct cpu_profile_stack *s, uint32_t i)
{
	return load_slot(p, s->pcs + (size_t)i * p->slot);
}

static uint64_t next_slot(struct parser *w)
{
	uint64_t value = load_slot(w->p, w->data + w->at);

	w->at += w->p->slot;
	return value;
}

static size_t slots_left(const struct parser *w)
{
	return (w->len - w->at) / w->p->slot;
}

/* Each of the four word formats has its own first two words: at most one matches. */
static bool profile_is_kind(struct cpu_profile *p, const uint8_t *data, size_t len, unsigned slot,
			    bool big)
{
	uint64_t words;

	p->slot = slot;
	p->big_endian = big;
	if (len / slot < 2 + HEADER_MIN || load_slot(p, data) != 0)
		return false;
	words = load_slot(p, data + slot);
	return words >= HEADER_MIN && words <= HEADER_MAX && load_slot(p, data + 2 * slot) == 0;
}

static bool profile_find_kind(struct cpu_profile *p, const uint8_t *data, size_t len)
{
	return profile_is_kind(p, data, len, 8, false) || profile_is_kind(p, data, len, 8, true) ||
	       profile_is_kind(p, data, len, 4, false) || profile_is_kind(p, data, len, 4, true);
}

bool cpu_profile_begins(const void *data, size_t len)
{
	struct cpu_profile p;

	return profile_find_kind(&p, data, len);
}

static int profile_parse_header(struct parser *w, struct error *err)
{
	struct cpu_profile *p = w->p;
	uint64_t words;

	if (!profile_find_kind(p, w->data, w->len))
		return error_set(err, -EBADMSG, "not a profile of gperftools' CPU profiler");
	w->at = p->slot;
	words = next_slot(w);
	if (words > slots_left(w))
		return error_set(err, -EBADMSG, "it ends at byte %zu, within its header", w->len);
	p->period_us = load_slot(p, w->data + (size_t)3 * p->slot);
	w->at += (size_t)words * p->slot;
	if (!p->period_us || p->period_us > INT64_MAX / 1000)
		return error_set(err, -EBADMSG, "its sampling period is invalid");
	return 0;
}

struct stack_key {
	const struct cpu_profile *p;
	const struct cpu_profile_stack *s;
	uint32_t hash;
};

static bool profile_is_stack(const struct cpu_profile_stack *known, const struct stack_key *key)
{
	return known->depth == key->s->depth &&
	       !memcmp(known->pcs, key->s->pcs, (size_t)known->depth * key->p->slot);
}

DEFINE_TABLE(stack_slots, struct stack_slot, const struct stack_key *, slot->number, slot->hash,
	     slot->hash == key->hash && profile_is_stack(&key->p->stacks[slot->number - 1], key));

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	uint64_t both;

	return __builtin_add_overflow(a, b, &both) ? UINT64_MAX : both;
}

static int profile_add_stack(struct parser *w, const struct cpu_profile_stack *s)
{
	struct cpu_profile *p = w->p;
	uint32_t hash =
		(uint32_t)XXH3_64bits_withSeed(s->pcs, (size_t)s->depth * p->slot, hash_secret[0]);
	struct stack_key key = { p, s, hash };
	struct stack_slot *slot = stack_slots_place(&w->known, hash, &key);

	if (!slot)
		return -ENOMEM;
	p->samples = add_saturated(p->samples, s->count);
	if (slot->number) {
		struct cpu_profile_stack *known = &p->stacks[slot->number - 1];

		known->count = add_saturated(known->count, s->count);
		return 0;
	}
	if (vec_push(p->stacks, p->stack_count, w->stack_cap, *s) < 0)
		return -ENOMEM;
	*slot = (struct stack_slot){ hash, (uint32_t)p->stack_count };
	w->known.count++;
	return 0;
}

/* 1: a record; 0: the trailer; -errno. */
static int profile_parse_record(struct parser *w, struct error *err)
{
	struct cpu_profile_stack s = { 0 };
	size_t at = w->at;
	uint64_t depth;

	if (slots_left(w) < 2)
		return error_set(err, -EBADMSG, "it ends at byte %zu, within its records", w->len);
	s.count = next_slot(w);
	depth = next_slot(w);
	if (depth > slots_left(w))
		return error_set(err, -EBADMSG,
				 "its record at byte %zu has %" PRIu64
				 " addresses, but the file ends at byte %zu",
				 at, depth, w->len);
	if (!depth)
		return error_set(err, -EBADMSG, "its record at byte %zu has no address", at);
	s.pcs = w->data + w->at;
	s.depth = (uint32_t)MIN(depth, CPU_PROFILE_DEPTH_MAX);
	w->at += (size_t)depth * w->p->slot;
	if (!s.count && depth == 1 && !cpu_profile_pc(w->p, &s, 0))
		return 0;
	if (!s.count)
		return error_set(err, -EBADMSG, "its record at byte %zu counts nothing", at);
	return profile_add_stack(w, &s) < 0 ? error_errno(err, -ENOMEM, "can't keep its stacks")
					    : 1;
}

/* Parses a hexadecimal number and the character after it. */
static bool take_hex(const char **p, const char *end, char after, uint64_t *ret)
{
	uint64_t value = 0;
	const char *begin = *p;

	for (; *p < end && *p - begin < 16; ++*p) {
		char c = **p;
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			break;
		value = value << 4 | (unsigned)digit;
	}
	if (*p == begin || *p == end || **p != after)
		return false;
	++*p;
	*ret = value;
	return true;
}

static bool is_word_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_';
}

/* Replaces "$build" at word boundaries by the value of the last "build=" line. */
static void profile_spell_path(struct parser *w, const char *p, const char *end)
{
	static const char name[] = "$build";
	const size_t len = sizeof(name) - 1;

	buf_clear(&w->path);
	/* Bounds the path: "$build" may occur many times. */
	while (p < end && w->path.len < PATH_MAX) {
		if ((size_t)(end - p) >= len && !memcmp(p, name, len) &&
		    ((size_t)(end - p) == len || !is_word_char(p[len]))) {
			buf_append(&w->path, w->build.data, MIN(w->build.len, (size_t)PATH_MAX));
			p += len;
		} else {
			buf_putc(&w->path, *p++);
		}
	}
}

static const char *skip_word(const char *p, const char *end)
{
	while (p < end && *p != ' ')
		p++;
	while (p < end && *p == ' ')
		p++;
	return p;
}

static int profile_add_mapping(struct parser *w, const struct cpu_profile_mapping *m,
			       struct error *err)
{
	struct cpu_profile *p = w->p;

	if (p->mapping_count == CPU_PROFILE_MAPPINGS_MAX)
		return error_set(err, -EFBIG, "it has more than %d mappings",
				 CPU_PROFILE_MAPPINGS_MAX);
	if (vec_reserve(p->mappings, p->mapping_count, w->mapping_cap, 1) < 0)
		return error_errno(err, -ENOMEM, "can't keep its mappings");
	p->mappings[p->mapping_count] = *m;
	p->mappings[p->mapping_count].path = strndup(w->path.data ?: "", w->path.len);
	if (!p->mappings[p->mapping_count].path)
		return error_errno(err, -ENOMEM, "can't keep its mappings");
	p->mapping_count++;
	return 0;
}

/* Lines other than mappings and "build=" are ignored. */
static int profile_parse_line(struct parser *w, const char *p, const char *end, struct error *err)
{
	struct cpu_profile_mapping m = { 0 };
	const char *text = p;

	if (p < end && end[-1] == '\r')
		end--;
	while (text < end && *text == ' ')
		text++;
	if (end - text >= 6 && !memcmp(text, "build=", 6)) {
		buf_clear(&w->build);
		buf_append(&w->build, text + 6, (size_t)(end - text - 6));
		return 0;
	}
	if (!take_hex(&p, end, '-', &m.start) || !take_hex(&p, end, ' ', &m.end) || end - p < 5 ||
	    p[4] != ' ' || p[2] != 'x' || m.end <= m.start)
		return 0;
	p += 5;
	if (!take_hex(&p, end, ' ', &m.offset))
		return 0;
	p = skip_word(skip_word(p, end), end);
	profile_spell_path(w, p, end);
	return profile_add_mapping(w, &m, err);
}

static int profile_mapping_by_start(const void *a, const void *b)
{
	const struct cpu_profile_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int profile_parse_text(struct parser *w, struct error *err)
{
	const char *p = (const char *)w->data + w->at, *end = (const char *)w->data + w->len;

	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p)) ?: end;
		int r = profile_parse_line(w, p, newline, err);

		if (r < 0)
			return r;
		p = newline + (newline < end);
	}
	if (buf_error(&w->build) < 0 || buf_error(&w->path) < 0)
		return error_errno(err, -ENOMEM, "can't keep its mappings");
	if (w->p->mapping_count)
		qsort(w->p->mappings, w->p->mapping_count, sizeof(*w->p->mappings),
		      profile_mapping_by_start);
	return 0;
}

int cpu_profile_parse(struct cpu_profile *ret, const void *data, size_t len, struct error *err)
{
	struct parser w = { .p = ret, .data = data, .len = len };
	int r;

	*ret = (struct cpu_profile){ 0 };
	r = profile_parse_header(&w, err) ?: 1;
	while (r > 0)
		r = profile_parse_record(&w, err);
	if (r == 0)
		r = profile_parse_text(&w, err);
	TABLE_DEINIT(&w.known);
	buf_deinit(&w.build);
	buf_deinit(&w.path);
	return r;
}

void cpu_profile_deinit(struct cpu_profile *p)
{
	for (size_t i = 0; i < p->mapping_count; i++)
		free(p->mappings[i].path);
	free(p->mappings);
	free(p->stacks);
	*p = (struct cpu_profile){ 0 };
}

const struct cpu_profile_mapping *cpu_profile_find(const struct cpu_profile *p, uint64_t address)
{
	size_t low = lower_bound(i, p->mapping_count, p->mappings[i].start <= address);

	if (!low || address >= p->mappings[low - 1].end)
		return NULL;
	return &p->mappings[low - 1];
}
