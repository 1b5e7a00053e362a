/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Twice through the file: once for all that decodes, then for the events, which take what was
 * told behind them, too.
 */
#include "formats/perfetto_read/perfetto.h"

#include <stdlib.h>

#include "base/io.h"
#include "formats/perfetto/origin.h"
#include "formats/perfetto/packet.h"
#include "formats/perfetto_read/ending.h"
#include "formats/perfetto_read/formats.h"
#include "formats/perfetto_read/marks.h"
#include "formats/perfetto_read/packets.h"
#include "formats/perfetto_read/tasks.h"
#include "proto/origin.pb-c.h"
#include "stream/layout.h"

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
	struct addresses addresses;
	struct bundles bundles;
	struct pf_mark_writer *marks; /* owned; NULL: they are not wanted */
	bool has_stats;		      /* the last packet was met */
	/* Packets of the trace; what is behind them, in a file that has several, is another one. */
	uint64_t packets;
	struct missing missing;
};

static void importing_deinit(struct importing *x)
{
	traced__origin__recording__free_unpacked(x->head, NULL);
	traced__origin__recording__free_unpacked(x->end, NULL);
	bundles_deinit(&x->bundles);
	pf_mark_writer_free(x->marks);
	pf_schema_free(x->schema);
	event_table_free(x->table);
	addresses_deinit(&x->addresses);
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
		return error_hint(err, "convert it with that one");
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
	addresses_init(&x->addresses, h->word_size);
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
		x->missing.damaged++;
		return x->budget.failed == -ENOMEM ? cant_keep(-ENOMEM, err) : 0;
	}
	if (!x->head && !m->ended) {
		x->head = m;
		return begin(x, err);
	}
	x->missing.another = !m->ended;
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
		else if (f.number == BUNDLE_ADDRESSES)
			r = addresses_add(&x->addresses, &f);
		if (r == -EBADMSG) {
			x->missing.damaged++;
			r = 0;
		}
	}
	x->missing.damaged += fields.bad;
	return cant_keep(r, err);
}

static int not_ours(const struct importing *x, struct error *err)
{
	if (x->missing.cut)
		return error_set(err, -EBADMSG, "it is cut or damaged at its beginning");
	error_set(err, -EBADMSG,
		  "a Perfetto trace, but none that this traced wrote: it does not tell "
		  "the formats of its events");
	return error_hint(err, "ui.perfetto.dev and Perfetto's traceconv read it");
}

/* Of the trace; 1: it has no more. */
typedef int (*take_t)(struct importing *x, const struct pf_packet *p, struct error *err);

/* The file's first packets, max of them at most. */
static int each_packet(struct importing *x, int in, uint64_t max, take_t take, struct error *err)
{
	_cleanup_(pf_packets_deinit) struct pf_packets packets;
	struct pf_packet p;
	int r = pf_packets_init(&packets, in);

	if (r < 0)
		return error_errno(err, r, "can't read it");
	for (uint64_t n = 0; r == 0 && n < max; n++) {
		r = pf_packets_next(&packets, &p, err);
		if (r <= 0)
			break;
		r = take(x, &p, err);
	}
	x->missing.cut |= packets.cut;
	return MIN(r, 0);
}

/* All that a packet tells besides events. */
static int take_packet(struct importing *x, const struct pf_packet *p, struct error *err)
{
	int r = p->recording.len ? take_recording(x, &p->recording, err) : 0;

	x->packets++;
	x->has_stats |= p->trace_stats.len > 0;
	/* All that is decoded comes behind the head. */
	if (r < 0 || !x->head)
		return r;
	if (p->bundle.len)
		r = learn(x, &p->bundle, err);
	if (r == 0 && p->process_tree.len)
		r = tasks_import(x->w, p, err);
	if (r == -EBADMSG) {
		x->missing.damaged++;
		r = 0;
	}
	if (r == 0 && x->marks)
		r = pf_mark_writer_add(x->marks, p, err);
	return r ?: x->missing.another;
}

static int first_pass(struct importing *x, int in, const struct import_options *o,
		      struct error *err)
{
	int r = 0;

	/* While they are put in order they take twice as much. */
	if (o->marks_fd && pf_mark_writer_new(&x->marks, o->marks_fd, o->limit / 4) < 0)
		r = cant_keep(-ENOMEM, err);
	if (r == 0)
		r = each_packet(x, in, UINT64_MAX, take_packet, err);
	/* Ours and Perfetto's own end with counts; of several files each. */
	x->missing.cut |= !x->has_stats;
	if (r == 0 && !x->head)
		r = not_ours(x, err);
	if (r < 0 || !x->marks)
		return r;
	r = pf_mark_writer_close(x->marks, o->ret_marks, err);
	x->missing.marks = pf_mark_writer_left_out(x->marks, &x->missing.marks_why);
	return r;
}

static int write_texts(struct importing *x)
{
	int r = addresses_seal(&x->addresses);

	if (r == 0 && x->addresses.kallsyms.len)
		r = stream_write(x->w, CHUNK_KALLSYMS, x->addresses.kallsyms.data,
				 x->addresses.kallsyms.len);
	if (r == 0 && x->addresses.printk.len)
		r = stream_write(x->w, CHUNK_PRINTK, x->addresses.printk.data,
				 x->addresses.printk.len);
	if (r == 0 && x->addresses.arguments.len)
		r = stream_write(x->w, CHUNK_ARGUMENTS, x->addresses.arguments.data,
				 x->addresses.arguments.len);
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
	x->missing.damaged += unknown;
	if (r == 0)
		r = record_maker_init(&b->maker, x->schema, x->table, &x->addresses);
	b->running = calloc(BUNDLE_CPUS, sizeof(*b->running));
	if (r == 0 && !b->running)
		r = -ENOMEM;
	pf_sched_layout_init(&b->layout, x->table, h->big_endian);
	return cant_keep(r ?: write_texts(x), err);
}

static int take_events(struct importing *x, const struct pf_packet *p, struct error *err)
{
	int r = p->bundle.len ? bundles_add(&x->bundles, &p->bundle) : 0;

	if (r != -EBADMSG)
		return cant_keep(r, err);
	x->missing.damaged++;
	return 0;
}

static int write_end(struct importing *x, struct error *err)
{
	x->missing.events = x->bundles.left_out;
	x->missing.bundles = x->bundles.damaged;
	x->missing.symbols = x->addresses.full;
	return cant_keep(ending_write(x->w, x->end, &x->missing), err);
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
		r = each_packet(&x, in, x.packets, take_events, err);
	if (r == 0)
		r = write_end(&x, err);
	importing_deinit(&x);
	return r;
}
