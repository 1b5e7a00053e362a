/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Twice through the file: once for all that decodes, then for the events, which take what was
 * told behind them, too.
 */
#include "import/perfetto/perfetto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "export/perfetto/origin.h"
#include "export/perfetto/packet.h"
#include "import/perfetto/formats.h"
#include "import/perfetto/marks.h"
#include "import/perfetto/packets.h"
#include "import/perfetto/tasks.h"
#include "proto/origin.pb-c.h"
#include "stream/layout.h"
#include "util/io.h"

/* What the head's and the end's packets may be unpacked into. */
#define RECORDING_MEMORY (64U << 20)
/* No kernel's records begin with more. */
#define COMMON_MAX 256

struct importing {
	struct stream_writer *w;
	struct budget budget;
	Traced__Origin__Recording *head, *end; /* owned; NULL: not met */
	struct event_table *table;	       /* owned */
	struct pf_schema *schema;	       /* owned */
	struct formats formats;
	struct places places;
	struct bundles bundles;
	struct pf_mark_writer *marks; /* owned; NULL: they are not wanted */
	uint64_t marks_left_out;
	char marks_why[192];
	uint64_t damaged; /* packets, formats and symbols that make no sense */
	bool has_stats;	  /* the last packet was met */
	bool cut;
	/* Packets of the trace; what is behind them, in a file that has several, is another one. */
	uint64_t packets;
	bool another;
};

static void importing_deinit(struct importing *x)
{
	traced__origin__recording__free_unpacked(x->head, NULL);
	traced__origin__recording__free_unpacked(x->end, NULL);
	bundles_deinit(&x->bundles);
	pf_mark_writer_free(x->marks);
	pf_schema_free(x->schema);
	event_table_free(x->table);
	places_deinit(&x->places);
	formats_deinit(&x->formats);
}

static int cant_keep(int r, struct error *err)
{
	return r < 0 ? error_errno(err, r, "can't keep the recording's events") : 0;
}

static int make_table(struct importing *x, const Traced__Capture__Header *h)
{
	struct event_table_env env = {
		.word_size = h->word_size,
		.big_endian = h->big_endian,
		.pointers = POINTER_RAW,
	};
	unsigned major, minor;

	if (sscanf(h->release, "%u.%u", &major, &minor) == 2)
		env.kernel = major << 16 | minor;
	text_options_parse(&env.text, h->trace_options);
	return event_table_new(&x->table, &env);
}

static int write_head(struct importing *x, struct error *err)
{
	Traced__Capture__Header *h = x->head->header;
	const ProtobufCBinaryData *constants = &x->head->constants;
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r;

	h->version = STREAM_VERSION;
	h->subbuf_size = x->bundles.pages.layout.subbuf_size;
	h->tasks_subbuf_size = 0;
	h->pointers_shown = true;
	r = pages_describe(h->word_size, h->subbuf_size, &text);
	if (r == 0)
		r = stream_write_message(x->w, CHUNK_HEADER, &h->base);
	if (r == 0)
		r = stream_write(x->w, CHUNK_HEADER_PAGE, text.data, text.len);
	if (r == 0 && constants->len)
		r = stream_write(x->w, CHUNK_ENUMS, constants->data, constants->len);
	if (r == 0)
		r = event_table_add_enums(x->table, (const char *)constants->data, constants->len);
	return cant_keep(r, err);
}

static int begin(struct importing *x, struct error *err)
{
	const Traced__Capture__Header *h = x->head->header;
	struct page_layout *layout = &x->bundles.pages.layout;
	int r;

	if (x->head->version > ORIGIN_VERSION) {
		error_set(err, -EBADMSG, "it was written by a newer version of traced");
		return error_hint(err, "convert it with that one") ?: -EBADMSG;
	}
	if (!h || (h->word_size != 4 && h->word_size != 8))
		return error_set(err, -EBADMSG, "what it says of its recording can't be");
	*layout = (struct page_layout){
		.word_size = (uint8_t)h->word_size,
		.big_endian = h->big_endian,
		/* Where text is no UTF-8 it is longer than it was. */
		.subbuf_size = MIN(MAX(h->subbuf_size, 4096U) * 2, SUBBUF_SIZE_MAX / 2),
		.commit_offset = 8,
		.commit_size = h->word_size,
		.data_offset = 8 + h->word_size,
	};
	places_init(&x->places, h->word_size);
	r = make_table(x, h);
	if (r == 0)
		r = formats_init(&x->formats, x->table, x->w);
	return r < 0 ? cant_keep(r, err) : write_head(x, err);
}

/* The head, which comes before all that is decoded; or the end. */
static int take_recording(struct importing *x, const struct wire_field *f, struct error *err)
{
	Traced__Origin__Recording *m =
		traced__origin__recording__unpack(&x->budget.allocator, f->len, f->data);

	if (!m) {
		x->damaged++;
		return x->budget.failed == -ENOMEM ? cant_keep(-ENOMEM, err) : 0;
	}
	if (!x->head && !m->ended) {
		x->head = m;
		return begin(x, err);
	}
	x->another = !m->ended;
	if (m->ended && !x->end)
		x->end = m;
	else
		traced__origin__recording__free_unpacked(m, &x->budget.allocator);
	return 0;
}

/* What a bundle says of all that come behind it. */
static int learn(struct importing *x, const struct wire_field *bundle, struct error *err)
{
	struct wire_reader fields = wire_reader_in(bundle);
	struct wire_field f;
	int r = 0;

	while (r == 0 && wire_read(&fields, &f)) {
		if (f.type != WIRE_BYTES)
			continue;
		if (f.number == BUNDLE_FORMATS)
			r = formats_take(&x->formats, &f);
		else if (f.number == BUNDLE_PLACES)
			r = places_add(&x->places, &f);
		if (r == -EBADMSG) {
			x->damaged++;
			r = 0;
		}
	}
	x->damaged += fields.bad;
	return cant_keep(r, err);
}

static int not_ours(const struct importing *x, const struct pf_packets *p, struct error *err)
{
	/* Ours and Perfetto's own end with counts. */
	if (p->cut || !x->has_stats)
		return error_set(err, -EBADMSG, "it is cut or damaged at its beginning");
	error_set(err, -EBADMSG,
		  "a Perfetto trace, but none that this traced wrote: it does not tell "
		  "the formats of its events");
	return error_hint(err, "ui.perfetto.dev and Perfetto's traceconv read it") ?: -EBADMSG;
}

static int rewind_file(int in, struct error *err)
{
	return lseek(in, 0, SEEK_SET) < 0 ? error_errno(err, -errno, "can't read it") : 0;
}

/* All that a packet tells besides events. */
static int take_packet(struct importing *x, const struct pf_packet *p, struct error *err)
{
	int r = p->recording.len ? take_recording(x, &p->recording, err) : 0;

	x->has_stats |= p->trace_stats.len > 0;
	/* All that is decoded comes behind the head. */
	if (r < 0 || !x->head)
		return r;
	if (p->bundle.len)
		r = learn(x, &p->bundle, err);
	if (r == 0 && p->process_tree.len)
		r = tasks_import(x->w, p, err);
	if (r == -EBADMSG) {
		x->damaged++;
		r = 0;
	}
	if (r == 0 && x->marks)
		r = pf_mark_writer_add(x->marks, p, err);
	return r;
}

static int end_marks(struct importing *x, const struct import_options *o, struct error *err)
{
	const char *why;
	int r = pf_mark_writer_close(x->marks, o->ret_marks, err);

	x->marks_left_out = pf_mark_writer_left_out(x->marks, &why);
	if (x->marks_left_out)
		snprintf(x->marks_why, sizeof(x->marks_why),
			 "marks of the Perfetto trace, or parts of them, are left out, the first: "
			 "%s",
			 why);
	return r;
}

static int first_pass(struct importing *x, int in, const struct import_options *o,
		      struct error *err)
{
	struct pf_packets packets;
	struct pf_packet p;
	int r = rewind_file(in, err);

	if (r < 0)
		return r;
	r = pf_packets_init(&packets, in);
	if (r < 0)
		return error_errno(err, r, "can't read it");
	/* While they are put in order they take twice as much. */
	if (o->marks_fd && pf_mark_writer_new(&x->marks, o->marks_fd, o->limit / 4) < 0)
		r = cant_keep(-ENOMEM, err);
	while (r == 0 && !x->another && (r = pf_packets_next(&packets, &p, err)) > 0) {
		r = take_packet(x, &p, err);
		x->packets++;
	}
	if (r == 0 && !x->head)
		r = not_ours(x, &packets, err);
	if (r == 0 && x->marks)
		r = end_marks(x, o, err);
	/* Its last packet of all; of each file of several. */
	x->cut = packets.cut || !x->has_stats;
	pf_packets_deinit(&packets);
	return r;
}

static int write_texts(struct importing *x)
{
	int r = places_seal(&x->places);

	if (r == 0 && x->places.kallsyms.len)
		r = stream_write(x->w, CHUNK_KALLSYMS, x->places.kallsyms.data,
				 x->places.kallsyms.len);
	if (r == 0 && x->places.printk.len)
		r = stream_write(x->w, CHUNK_PRINTK, x->places.printk.data, x->places.printk.len);
	if (r == 0 && x->places.arguments.len)
		r = stream_write(x->w, CHUNK_ARGUMENTS, x->places.arguments.data,
				 x->places.arguments.len);
	return r;
}

/* All that decodes is known. */
static int prepare(struct importing *x, struct error *err)
{
	const Traced__Capture__Header *h = x->head->header;
	const struct pf_schema_env env = {
		.table = x->table,
		.word_size = h->word_size,
		.big_endian = h->big_endian,
		.raw_addresses = x->head->raw_addresses,
		.legacy_generic = x->head->legacy_generic,
		.generic = x->formats.generic,
	};
	uint64_t unknown = 0;
	struct bundles *b = &x->bundles;
	int r = event_table_seal(x->table, err);

	if (r < 0)
		return r;
	if (event_table_common(x->table)->size > COMMON_MAX)
		return error_set(err, -EBADMSG, "its event formats can't be");
	r = pf_schema_new(&x->schema, &env);
	if (r == 0)
		r = formats_number(&x->formats, x->schema, &b->events, &b->event_count, &unknown);
	x->damaged += unknown;
	if (r == 0)
		r = record_maker_init(&b->maker, x->schema, x->table, &x->places);
	b->running = calloc(BUNDLE_CPUS, sizeof(*b->running));
	if (r == 0 && !b->running)
		r = -ENOMEM;
	pf_sched_layout_init(&b->layout, x->table, h->big_endian);
	return cant_keep(r ?: write_texts(x), err);
}

static int second_pass(struct importing *x, int in, struct error *err)
{
	struct pf_packets packets;
	struct pf_packet p;
	int r = rewind_file(in, err);

	if (r < 0)
		return r;
	r = pf_packets_init(&packets, in);
	if (r < 0)
		return error_errno(err, r, "can't read it");
	for (uint64_t n = 0; n < x->packets && (r = pf_packets_next(&packets, &p, err)) > 0; n++) {
		r = p.bundle.len ? bundles_add(&x->bundles, &p.bundle) : 0;
		if (r == -EBADMSG) {
			x->damaged++;
			r = 0;
		}
		if (cant_keep(r, err) < 0)
			break;
	}
	pf_packets_deinit(&packets);
	return MIN(r, 0);
}

static int write_note(struct importing *x, bool missing, const char *text)
{
	Traced__Capture__Note note = TRACED__CAPTURE__NOTE__INIT;

	note.text = (char *)(uintptr_t)text;
	note.missing = missing;
	return stream_write_message(x->w, CHUNK_NOTE, &note.base);
}

static int note_of(struct importing *x, uint64_t count, const char *what)
{
	char text[256];

	snprintf(text, sizeof(text), "%" PRIu64 " %s", count, what);
	return write_note(x, true, text);
}

static int write_notes(struct importing *x)
{
	int r = 0;

	for (size_t i = 0; x->end && r == 0 && i < x->end->n_notes; i++)
		r = stream_write_message(x->w, CHUNK_NOTE, &x->end->notes[i]->base);
	if (r == 0 && x->another)
		r = write_note(x, true,
			       "behind the Perfetto trace follows another one, which is not read: "
			       "convert each by itself");
	if (r == 0 && x->cut)
		r = write_note(x, true, "the Perfetto trace is cut or damaged: events are missing");
	else if (r == 0 && x->end && x->end->incomplete)
		r = write_note(x, true,
			       "what the Perfetto trace was made of was not complete already");
	if (r == 0 && x->damaged)
		r = note_of(x, x->damaged,
			    "packets, formats and symbols of the Perfetto trace make no "
			    "sense: they are left out");
	if (r == 0 && x->bundles.left_out)
		r = note_of(x, x->bundles.left_out,
			    "events of the Perfetto trace make no sense: they are left out");
	if (r == 0 && x->bundles.damaged)
		r = note_of(x, x->bundles.damaged,
			    "bundles of the Perfetto trace are damaged: values in their events are "
			    "missing");
	if (r == 0 && x->marks_left_out)
		r = note_of(x, x->marks_left_out, x->marks_why);
	if (r == 0 && x->places.full)
		r = write_note(x, true, "the Perfetto trace has more symbols than are taken");
	return r;
}

static int write_end(struct importing *x, struct error *err)
{
	Traced__Capture__End none = TRACED__CAPTURE__END__INIT;
	int r = 0;

	for (size_t i = 0; x->end && r == 0 && i < x->end->n_clocks; i++)
		r = stream_write_message(x->w, CHUNK_CLOCKS, &x->end->clocks[i]->base);
	for (size_t i = 0; x->end && r == 0 && i < x->end->n_stats; i++)
		r = stream_write_message(x->w, CHUNK_STATS, &x->end->stats[i]->base);
	if (r == 0)
		r = write_notes(x);
	if (r == 0)
		r = stream_write_message(x->w, CHUNK_END,
					 x->end && x->end->end ? &x->end->end->base : &none.base);
	return cant_keep(r, err);
}

int perfetto_import(int in, struct stream_writer *w, const struct import_options *o,
		    struct error *err)
{
	struct importing x = { .w = w, .bundles.pages.w = w };
	int r;

	if (o->instance && *o->instance)
		return error_set(err, -ENOENT, "a Perfetto trace has no instances");
	budget_init(&x.budget, RECORDING_MEMORY);
	r = first_pass(&x, in, o, err);
	if (r == 0)
		r = prepare(&x, err);
	if (r == 0)
		r = second_pass(&x, in, err);
	if (r == 0)
		r = write_end(&x, err);
	importing_deinit(&x);
	return r;
}
