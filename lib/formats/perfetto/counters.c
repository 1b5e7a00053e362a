/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counters of applications: one track per series, below the process's track. */
#include "formats/perfetto/track_event.h"

#include "formats/perfetto/numbers.h"

/* Splits "heap [bytes]" into the name "heap" and the unit bytes. */
static void counter_split_unit(struct text *name, struct pf_track_form *form)
{
	const char *open = name->len && name->data[name->len - 1] == ']'
				   ? memrchr(name->data, '[', name->len)
				   : NULL;
	struct text unit;

	if (!open)
		return;
	unit.data = open + 1;
	unit.len = (uint32_t)(name->data + name->len - 1 - unit.data);
	name->len = (uint32_t)(open - name->data);
	while (name->len && name->data[name->len - 1] == ' ')
		name->len--;
	if (text_equal(unit, TEXT("bytes")) || text_equal(unit, TEXT("B")))
		form->unit = UNIT_SIZE_BYTES;
	else if (text_equal(unit, TEXT("ns")))
		form->unit = UNIT_TIME_NS;
	else
		form->unit_name = unit;
}

static void counter_add_word(struct buf *to, struct text word)
{
	if (to->len && word.len)
		buf_putc(to, ' ');
	buf_append(to, word.data, MIN(word.len, PF_NAME_BYTES_MAX));
}

/* Builds the track's name: counter, id if any, and the series unless it equals the counter. */
static int counter_spell(const struct mark *mark, struct text key, struct pf_track_form *form,
			 struct buf *to)
{
	struct text name = mark->part[PART_NAME];

	counter_split_unit(&name, form);
	counter_split_unit(&key, form);
	counter_add_word(to, name);
	counter_add_word(to, mark->part[PART_ID]);
	if (!text_equal(key, name) && !text_equal(key, TEXT("value")))
		counter_add_word(to, key);
	form->name = (struct text){ to->data, (uint32_t)to->len };
	return buf_error(to);
}

static int counter_put_series(struct pf_marks *m, const struct mark *mark, const struct value *v,
			      uint64_t parent, struct buf *out)
{
	struct pf_track_form form = { .parent = parent, .kind = PF_TRACK_COUNTER };
	uint64_t uuid = pf_mark_id('c', mark, true, mark->part[PART_NAME], mark->part[PART_ID]);
	_cleanup_buf_ struct buf name = BUF_INIT;
	struct pf_track *track;
	double d = 0;
	int r;

	if (counter_spell(mark, v->key, &form, &name) < 0)
		return -ENOMEM;
	track = pf_track_get(&m->tracks, pf_track_uuid('c', 0, 0, v->key, uuid));
	if (!track)
		return -ENOMEM;
	r = pf_track_describe(&m->tracks, track, &form, out);
	if (r < 0)
		return r;
	pf_event_begin(m, COUNTER, track->uuid);
	pf_event_put_categories(m, mark->part[PART_CAT]);
	value_number(v, &d);
	if (v->type == VALUE_INT || (v->type == VALUE_UINT && v->u <= INT64_MAX))
		pf_uint(&m->event, EVENT_COUNTER, v->u);
	else
		pf_double(&m->event, EVENT_DOUBLE_COUNTER, d);
	return pf_event_end(m, mark->ts, out);
}

static int counter_put_below(struct pf_marks *m, const struct mark *mark, uint64_t parent,
			     struct buf *out)
{
	uint64_t numberless = 0;
	struct value_iter it;
	struct value v;
	bool any = false;
	int r = 0;

	value_iter_init(&it, mark->part[PART_ARGS], true);
	while (r == 0 && value_next_number(&it, &v, &numberless)) {
		any = true;
		r = counter_put_series(m, mark, &v, parent, out);
	}
	/* A counter without any number is left out, and counted, as a whole. */
	m->numberless += any ? numberless : 0;
	return r ?: any ? r : -EINVAL;
}

int pf_marks_put_counter(struct pf_marks *m, const struct mark *mark, struct buf *out)
{
	uint64_t process;
	int r = pf_track_describe_actor(&m->tracks, mark->pid, 0, &process, out);

	return r ?: counter_put_below(m, mark, process, out);
}

int pf_marks_put_polled(struct pf_marks *m, const struct mark *mark, struct buf *out)
{
	const struct pf_track_form form = { .name = TEXT("Polled files") };
	struct pf_track *track = pf_track_get(&m->tracks, pf_track_uuid('q', 0, 0, TEXT(""), 0));
	int r;

	if (!track)
		return -ENOMEM;
	m->tracks.ts = mark->ts;
	r = pf_track_describe(&m->tracks, track, &form, out);
	return r ?: counter_put_below(m, mark, track->uuid, out);
}
