/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events that need more than their message: births of tasks, and marks in the kernel's own buffer
 * that readers take for atrace's.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/secret_hash.h"
#include "base/vec.h"
#include "formats/perfetto/field.h"

static bool schema_note_birth(struct pf_schema *s, const struct field *tid,
			      const struct trace_event *ev)
{
	struct pf_birth birth = { .ts = ev->rec.ts };
	uint64_t value;

	if (!record_read_uint(s->env.table, &ev->rec, tid->offset, tid->size, &value))
		return true;
	birth.tid = (int32_t)value;
	return vec_push(s->births, s->birth_count, s->birth_cap, birth) == 0;
}

/* The next part of a mark, up to its '|'. */
static struct text mark_next_part(const char **at, const char *end)
{
	struct text part = { *at, 0 };

	while (*at < end && **at != '|' && **at && **at != '\n')
		(*at)++;
	part.len = (uint32_t)(*at - part.data);
	*at += *at < end && **at == '|';
	return part;
}

enum number_kind { NUMBER_NONE, NUMBER_INTEGER, NUMBER_FRACTION };

/* Numbers as in JSON, and those only: no hexadecimal ones, no spaces, no "inf". */
static enum number_kind mark_read_number(struct text t, double *ret)
{
	char copy[64], *end;
	bool integer = true;
	long long n;

	if (!t.len || t.len >= sizeof(copy))
		return NUMBER_NONE;
	memcpy(copy, t.data, t.len);
	copy[t.len] = '\0';
	if (strspn(copy, "+-.0123456789eE") < t.len)
		return NUMBER_NONE;
	for (uint32_t i = 0; i < t.len; i++)
		integer &= isdigit((unsigned char)copy[i]) || (!i && copy[i] == '-');
	errno = 0;
	n = integer ? strtoll(copy, &end, 10) : 0;
	if (integer && !errno && end == copy + t.len && end > copy) {
		*ret = (double)n;
		return NUMBER_INTEGER;
	}
	*ret = strtod(copy, &end);
	return end == copy + t.len && isfinite(*ret) ? NUMBER_FRACTION : NUMBER_NONE;
}

DEFINE_TABLE(pf_fractions, uint64_t, uint64_t, *slot != 0, hash_number(*slot), *slot == key);

/* Notes that a counter has had a fraction, if there is room. 0 or -ENOMEM. */
static int schema_note_fraction(struct pf_schema *s, uint64_t counter, int32_t pid)
{
	uint64_t *slot = pf_fractions_place(&s->fractions, hash_number(counter), counter);
	int r;

	if (!slot)
		return -ENOMEM;
	if (*slot)
		return 0;
	r = shares_try_take(&s->fraction_shares, &(struct share_owner){ .pid = pid }, 1);
	if (r < 0)
		return r == -ENOSPC ? 0 : r;
	*slot = counter;
	s->fractions.count++;
	return 0;
}

/* Notes a value of a counter. False: out of memory. */
static bool schema_note_counter(struct pf_schema *s, int32_t pid, struct text name, double value,
				uint64_t ts)
{
	struct pf_noted_counter c = {
		.ts = ts, .pid = pid, .value = value, .at = s->counter_names.len
	};

	c.len = name.len;
	buf_append(&s->counter_names, name.data, name.len);
	return buf_error(&s->counter_names) == 0 &&
	       vec_push(s->counters, s->counter_count, s->counter_cap, c) == 0;
}

/*
 * Accepts the atrace forms that readers know ("B|", "E", ...). They also misread other text with
 * the same first letter: "Entered" would end a slice.
 */
static bool is_atrace_mark(const char *text, size_t len)
{
	static const char clock_sync[] = "trace_event_clock_sync:";

	if (len > sizeof(clock_sync) && !memcmp(text, clock_sync, sizeof(clock_sync) - 1))
		return true;
	if (!len || !memchr("BECSFINGH", text[0], 9))
		return false;
	if (len > 1 && text[1] == '|')
		return true;
	return text[0] == 'E' && (len == 1 || !text[1] || text[1] == '\n');
}

/*
 * Readers know counters "C|pid|name|3", with whole numbers. A counter that had a fraction has its
 * whole numbers on the same track. NULL: out of memory.
 */
static const struct pf_event *schema_notice_counter(struct pf_schema *s, const struct pf_event *e,
						    const char *text, const char *end,
						    const struct trace_event *ev)
{
	const char *next = text;
	struct text pid_text = mark_next_part(&next, end), name = mark_next_part(&next, end);
	double pid = 0, value = 0;
	enum number_kind kind = mark_read_number(mark_next_part(&next, end), &value);
	uint64_t hash;

	if (kind == NUMBER_NONE || mark_read_number(pid_text, &pid) != NUMBER_INTEGER || pid < 0 ||
	    pid > INT32_MAX || !name.len)
		return e->free_text;
	if (kind == NUMBER_INTEGER && !s->fractions.count)
		return e;
	hash = XXH3_64bits_withSeed(name.data, name.len, (uint64_t)pid) ?: 1;
	if (kind == NUMBER_INTEGER && !pf_fractions_find(&s->fractions, hash_number(hash), hash))
		return e;
	if (schema_note_fraction(s, hash, ev->pid) < 0 ||
	    !schema_note_counter(s, (int32_t)pid, name, value, ev->rec.ts))
		return NULL;
	return e->free_text;
}

const struct pf_event *pf_schema_notice(struct pf_schema *s, const struct pf_event *e,
					const struct trace_event *ev)
{
	const char *text;
	struct span at;

	if (e->born)
		return schema_note_birth(s, e->born, ev) ? e : NULL;
	if (!field_locate(s, &e->free_text->ops[0], &ev->rec, &at))
		return e;
	text = (const char *)at.data;
	if (!is_atrace_mark(text, at.len))
		return e->free_text;
	if (*text != 'C')
		return e;
	return schema_notice_counter(s, e, text + 2, text + at.len, ev);
}
