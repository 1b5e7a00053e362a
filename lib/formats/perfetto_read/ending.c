/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/ending.h"

#include <inttypes.h>

static int put_note(struct stream_writer *w, const char *text)
{
	Traced__Capture__Note note = TRACED__CAPTURE__NOTE__INIT;

	note.text = (char *)(uintptr_t)text;
	note.missing = true;
	return stream_write_message(w, CHUNK_NOTE, &note.base);
}

static int put_count(struct stream_writer *w, uint64_t count, const char *what, const char *why)
{
	char text[256];

	if (!count)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64 " %s%s", count, what, why);
	return put_note(w, text);
}

static int put_counts(struct stream_writer *w, const struct missing *m)
{
	const struct {
		uint64_t count;
		const char *what, *why;
	} counts[] = {
		{ m->damaged,
		  "packets, formats and symbols of the Perfetto trace make no sense: they are left "
		  "out",
		  "" },
		{ m->events, "events of the Perfetto trace make no sense: they are left out", "" },
		{ m->bundles,
		  "bundles of the Perfetto trace are damaged: values in their events are missing",
		  "" },
		{ m->marks,
		  "marks of the Perfetto trace, or parts of them, are left out, the first: ",
		  m->marks_why ?: "" },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(counts); i++)
		r = put_count(w, counts[i].count, counts[i].what, counts[i].why);
	return r;
}

static int put_missing(struct stream_writer *w, const struct missing *m, bool incomplete)
{
	int r = 0;

	if (m->another)
		r = put_note(w, "behind the Perfetto trace follows another one, which is not read: "
				"convert each by itself");
	if (r == 0 && m->cut)
		r = put_note(w, "the Perfetto trace is cut or damaged: events are missing");
	else if (r == 0 && incomplete)
		r = put_note(w, "what the Perfetto trace was made of was not complete already");
	if (r == 0)
		r = put_counts(w, m);
	if (r == 0 && m->symbols)
		r = put_note(w, "the Perfetto trace has more symbols than are taken");
	return r;
}

int ending_write(struct stream_writer *w, const Traced__Origin__Recording *end,
		 const struct missing *missing)
{
	Traced__Origin__Recording none = TRACED__ORIGIN__RECORDING__INIT;
	Traced__Capture__End no_end = TRACED__CAPTURE__END__INIT;
	int r = 0;

	end = end ?: &none;
	for (size_t i = 0; r == 0 && i < end->n_clocks; i++)
		r = stream_write_message(w, CHUNK_CLOCKS, &end->clocks[i]->base);
	for (size_t i = 0; r == 0 && i < end->n_stats; i++)
		r = stream_write_message(w, CHUNK_STATS, &end->stats[i]->base);
	for (size_t i = 0; r == 0 && i < end->n_notes; i++)
		r = stream_write_message(w, CHUNK_NOTE, &end->notes[i]->base);
	if (r == 0)
		r = put_missing(w, missing, end->incomplete);
	if (r == 0)
		r = stream_write_message(w, CHUNK_END, end->end ? &end->end->base : &no_end.base);
	return r;
}
