/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/switch_line.h"

#include "print/printer.h"

/* NULL: no such field, or not a number. */
static const struct field *number_field(const struct event *ev, const char *name, uint32_t *need)
{
	const struct field *f = event_field(ev, name);

	if (!f || f->is_dynamic || f->is_array || !is_number_size(f->size))
		return NULL;
	*need = MAX(*need, f->offset + f->size);
	return f;
}

void switch_line_init(struct switch_line *s, const struct event *ev, bool big_endian)
{
	*s = (struct switch_line){
		.swap = big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__),
	};
	s->prev_prio = number_field(ev, "prev_prio", &s->need);
	s->next_prio = number_field(ev, "next_prio", &s->need);
	s->prev_state = number_field(ev, "prev_state", &s->need);
	if (!s->prev_prio || !s->next_prio || !s->prev_state)
		s->need = UINT32_MAX;
}

static uint64_t switch_line_load(const struct switch_line *s, const struct record *rec,
				 const struct field *f)
{
	return load_uint(rec->data + f->offset, f->size, s->swap);
}

static bool switch_line_is_negative(const struct switch_line *s, const struct record *rec,
				    const struct field *f)
{
	return switch_line_load(s, rec, f) >> (f->size * 8 - 1);
}

/* States known to Trace Viewer's cpu_state and thread_slice. */
static bool switch_line_known_state(const char *state, size_t len)
{
	switch (len) {
	case 1:
		return *state && strchr("SRDTtZXxKW", *state);
	case 2:
		return state[0] == 'R' && state[1] == '+';
	case 3:
		return state[0] == 'D' && state[1] == '|' && (state[2] == 'K' || state[2] == 'W');
	default:
		return false;
	}
}

/* Offset of the first arrow in out; comms may contain anything. */
static size_t switch_line_find_arrow(const struct buf *out, size_t text)
{
	static const char arrow[] = " ==> next_comm=";
	const char *begin = out->data + text, *end = out->data + out->len, *p = begin;

	for (; (p = memchr(p, '>', (size_t)(end - p))); p++)
		if (p - begin >= 3 && (size_t)(end - p) >= sizeof(arrow) - 1 - 3 &&
		    memcmp(p - 3, arrow, sizeof(arrow) - 1) == 0)
			return (size_t)(p - 3 - out->data);
	return SIZE_MAX;
}

/* Whether out has `key` directly before offset `at`, and not before `from`. */
static bool switch_line_has_key_before(const struct buf *out, size_t from, size_t at,
				       const char *key, size_t len)
{
	return at >= from + len && memcmp(out->data + at - len, key, len) == 0;
}

/* Replaces the number that ends at `end`, after key, by 0 if it is negative. */
static void switch_line_fix_prio(struct buf *out, size_t from, size_t end, const char *key,
				 size_t len)
{
	size_t at = end;

	while (at > from && (unsigned)(out->data[at - 1] - '0') < 10)
		at--;
	if (at > from && at < end && out->data[at - 1] == '-' &&
	    switch_line_has_key_before(out, from, at - 1, key, len))
		buf_replace(out, at - 1, end - at + 1, "0", 1);
}

/*
 * Parses "prev_comm=... prev_prio=N prev_state=X ==> next_comm=... next_prio=N" backwards from the
 * end of each half, since comms may contain anything. Returns whether the state was already known.
 */
static bool switch_line_fix_text(struct buf *out, size_t text)
{
	bool known;
	static const char key[] = " prev_state=", prev_prio[] = " prev_prio=";
	static const char next_prio[] = " next_prio=";
	size_t arrow = switch_line_find_arrow(out, text), at, len;

	if (arrow == SIZE_MAX)
		return false;
	switch_line_fix_prio(out, arrow, out->len, next_prio, sizeof(next_prio) - 1);
	for (at = arrow; at > text && out->data[at - 1] != '='; at--)
		;
	if (!switch_line_has_key_before(out, text, at, key, sizeof(key) - 1))
		return false;
	len = arrow - at;
	known = switch_line_known_state(out->data + at, len);
	/*
	 * "X+" becomes X for readers that don't know the plus; I and P become the sleeping state.
	 */
	if (!known) {
		char state =
			len && switch_line_known_state(out->data + at, 1) ? out->data[at] : 'S';

		buf_replace(out, at, len, &state, 1);
	}
	switch_line_fix_prio(out, text, at - (sizeof(key) - 1), prev_prio, sizeof(prev_prio) - 1);
	return known;
}

static bool switch_line_is_known(const struct switch_line *s, uint64_t state)
{
	for (unsigned i = 0; i < s->known_count; i++)
		if (s->known[i] == state)
			return true;
	return false;
}

void switch_line_fix(struct switch_line *s, const struct record *rec, struct buf *out, size_t text)
{
	bool whole = rec->len >= s->need;
	uint64_t state = whole ? switch_line_load(s, rec, s->prev_state) : 0;
	bool known = whole && switch_line_is_known(s, state);

	if (likely(known && !switch_line_is_negative(s, rec, s->prev_prio) &&
		   !switch_line_is_negative(s, rec, s->next_prio)))
		return;
	if (switch_line_fix_text(out, text) && whole && !known &&
	    s->known_count < ARRAY_SIZE(s->known))
		s->known[s->known_count++] = state;
}
