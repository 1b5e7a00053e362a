/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls of function_graph with values, as slices of a Perfetto trace. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "perfetto_run.h"

enum { PLACE_OUTER = 0x1000, PLACE_MIDDLE = 0x2000, PLACE_LEAF = 0x3000 };

/* Names that the packets so far have interned, by number. */
#define NAMES 64
struct names {
	ProtobufCBinaryData events[NAMES], keys[NAMES];
};

static void names_take(struct names *n, const PB(InternedData) * d)
{
	for (size_t i = 0; d && i < d->n_event_names; i++) {
		assert_true(d->event_names[i]->iid < NAMES);
		n->events[d->event_names[i]->iid] = d->event_names[i]->str;
	}
	for (size_t i = 0; d && i < d->n_debug_annotation_names; i++) {
		assert_true(d->debug_annotation_names[i]->iid < NAMES);
		n->keys[d->debug_annotation_names[i]->iid] = d->debug_annotation_names[i]->str;
	}
}

static void put_name(const ProtobufCBinaryData *names, uint64_t iid, struct buf *out)
{
	assert_true(iid < NAMES);
	buf_append(out, names[iid].data, names[iid].len);
}

static void put_annotation(const struct names *n, const PB(DebugAnnotation) * a, struct buf *out)
{
	buf_putc(out, ' ');
	put_name(n->keys, a->name_iid, out);
	buf_printf(out, "=%s", a->string_value ?: "{");
	for (size_t i = 0; i < a->n_dict_entries; i++)
		put_annotation(n, a->dict_entries[i], out);
	if (a->n_dict_entries)
		buf_puts(out, " }");
}

/* The name of a track, after that of its thread. */
static void put_track(const struct perfetto_run *r, uint64_t uuid, struct buf *out)
{
	for (size_t i = 0; i < r->trace->n_packet; i++) {
		const PB(TrackDescriptor) *t =
			r->trace->packet[i]->data_case == DATA(TRACK_DESCRIPTOR)
				? r->trace->packet[i]->track_descriptor
				: NULL;

		if (!t || t->uuid != uuid)
			continue;
		if (t->thread)
			buf_printf(out, "%d/%d ", t->thread->pid, t->thread->tid);
		else if (t->parent_uuid)
			put_track(r, t->parent_uuid, out);
		buf_puts(out, t->name ?: "");
		return;
	}
	fail_msg("no track %" PRIu64, uuid);
}

static void assert_calls(struct maker *m, const char *expected)
{
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct names names = { 0 };

	page_flush(m, 0, 0);
	perfetto_export(&r, m->fd);
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const PB(TracePacket) *p = r.trace->packet[i];
		const PB(TrackEvent) *e = p->track_event;

		if (p->data_case != DATA(TRACK_EVENT))
			continue;
		names_take(&names, p->interned_data);
		buf_printf(&text, "%" PRIu64 " %s ", p->timestamp,
			   e->type == PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN ? "+"
											    : "-");
		put_track(&r, e->track_uuid, &text);
		buf_puts(&text, ": ");
		put_name(names.events, e->name_iid, &text);
		for (size_t k = 0; k < e->n_debug_annotations; k++)
			put_annotation(&names, e->debug_annotations[k], &text);
		buf_putc(&text, '\n');
	}
	assert_string_equal(buf_string(&text) ?: "", expected);
	/* Each event is there, too, in the form of which readers make no slices. */
	for (size_t i = 0; *expected && i < r.trace->n_packet; i++) {
		const PB(FtraceEventBundle) *b =
			r.trace->packet[i]->data_case == DATA(FTRACE_EVENTS)
				? r.trace->packet[i]->ftrace_events
				: NULL;

		for (size_t k = 0; b && k < b->n_event; k++)
			assert_null(b->event[k]->funcgraph_entry
					    ?: (void *)b->event[k]->funcgraph_exit);
	}
	maker_deinit(m);
}

static void with_all(Traced__Capture__Header *h)
{
	h->tracer = (char *)"function_graph";
	h->trace_options = (char *)"funcgraph-retval\nfuncgraph-retaddr\nfuncgraph-args\n";
}

static void with_none(Traced__Capture__Header *h)
{
	h->tracer = (char *)"function_graph";
	h->trace_options = (char *)"nofuncgraph-retval\nnofuncgraph-args\n";
}

static void make_graph(struct maker *m, void (*header)(Traced__Capture__Header *))
{
	static const char lines[] = "leaf file:p count:i\n"
				    "middle a:i b:i\n";

	maker_init(m, 8, false, 4096);
	m->header = header;
	m->release = "6.19.0";
	maker_head(m);
	maker_graph_value_formats(m, true);
	maker_graph_retval_format(m);
	maker_symbols(m, "0000000000001000 T outer\n"
			 "0000000000002000 T middle\n"
			 "0000000000003000 T leaf\n"
			 "0000000000004000 T end\n");
	assert_int_equal(stream_write(&m->writer, CHUNK_ARGUMENTS, lines, strlen(lines)), 0);
	page_begin(m, 10000);
}

static void values_are_annotations(void **state _unused_)
{
	static const uint64_t leaf[] = { PLACE_OUTER + 0x10, 0x4000, (uint64_t)-3 },
			      middle[] = { 5 };
	struct maker m;

	make_graph(&m, with_all);
	event_graph_words(&m, 10000, 7, ID_GRAPH_ARGS, PLACE_OUTER, 0, NULL, 0);
	event_graph_words(&m, 10100, 7, ID_GRAPH_CALLER, PLACE_LEAF, 1, leaf, 3);
	event_graph_retval(&m, 10200, 7, PLACE_LEAF, 1, 50, 0xfffffff4); /* an int, -ENOMEM */
	event_graph_words(&m, 10300, 7, ID_GRAPH_ARGS, PLACE_MIDDLE, 1, middle, 1);
	event_graph_retval(&m, 10400, 7, PLACE_MIDDLE, 1, 50, 0x2a);
	event_graph_retval(&m, 10500, 7, PLACE_OUTER, 0, 500, 0);
	assert_calls(&m, "10000 + 7/7 Funcgraph: outer\n"
			 "10100 + 7/7 Funcgraph: leaf from=outer+0x10/0x1000"
			 " arguments={ file=0x4000 count=-3 }\n"
			 "10200 - 7/7 Funcgraph: leaf ret=-12\n"
			 "10300 + 7/7 Funcgraph: middle arguments={ a=5 ...=not recorded }\n"
			 "10400 - 7/7 Funcgraph: middle ret=0x2a\n"
			 "10500 - 7/7 Funcgraph: outer ret=0x0\n");
}

/* Idle tasks all have the tid 0. */
static void idle_tasks_have_a_track_of_their_cpu(void **state _unused_)
{
	struct maker m;

	make_graph(&m, with_all);
	event_graph_words(&m, 10000, 0, ID_GRAPH_ARGS, PLACE_OUTER, 0, NULL, 0);
	event_graph_retval(&m, 10500, 0, PLACE_OUTER, 0, 500, 1);
	assert_calls(&m, "10000 + swapper0 -funcgraph: outer\n"
			 "10500 - swapper0 -funcgraph: outer ret=0x1\n");
}

/* A record that is too short for its caller, and one that is too short for a function. */
static void damaged_records_make_no_slice(void **state _unused_)
{
	static const uint64_t half[] = { PLACE_OUTER };
	struct maker m;

	make_graph(&m, with_all);
	event_graph_words(&m, 10000, 7, ID_GRAPH_CALLER, PLACE_LEAF, 0, NULL, 0);
	maker_event(&m, 10100, ID_GRAPH_RETVAL, 7, half, sizeof(half));
	event_graph_words(&m, 10200, 7, ID_GRAPH_ARGS, PLACE_LEAF, 0, NULL, 0);
	assert_calls(&m, "10200 + 7/7 Funcgraph: leaf\n");
}

/* Perfetto's own messages say as much, in less room. */
static void without_values_messages_are_typed(void **state _unused_)
{
	_cleanup_perfetto_run_ struct perfetto_run r = { 0 };
	size_t typed = 0;
	struct maker m;

	make_graph(&m, with_none);
	event_graph_words(&m, 10000, 7, ID_GRAPH_ARGS, PLACE_OUTER, 0, NULL, 0);
	event_graph_retval(&m, 10500, 7, PLACE_OUTER, 0, 500, 1);
	page_flush(&m, 0, 0);
	perfetto_export(&r, m.fd);
	for (size_t i = 0; i < r.trace->n_packet; i++) {
		const PB(FtraceEventBundle) *b =
			r.trace->packet[i]->data_case == DATA(FTRACE_EVENTS)
				? r.trace->packet[i]->ftrace_events
				: NULL;

		for (size_t k = 0; b && k < b->n_event; k++)
			typed += b->event[k]->funcgraph_entry || b->event[k]->funcgraph_exit;
	}
	assert_int_equal(typed, 2);
	assert_int_equal(perfetto_find(&r, DATA(TRACK_EVENT), 0), r.trace->n_packet);
	maker_deinit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_annotations),
		cmocka_unit_test(idle_tasks_have_a_track_of_their_cpu),
		cmocka_unit_test(damaged_records_make_no_slice),
		cmocka_unit_test(without_values_messages_are_typed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
