/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events and losses of the JSON: each becomes a line, elements of traceEvents, or both. The part
 * that the file begins with is rendered, maybe by several threads; the other is spooled.
 */
#include "formats/json/sink.h"

static int json_begin_thread(void **ret, struct sink *sink)
{
	const struct sink_json *s = to_json(sink);
	struct json_writer *w;
	int r = json_writer_new(&w, s->info, s->tgid, s->page);

	if (r == 0)
		*ret = w;
	return r;
}

static void json_end_thread(void *state)
{
	json_writer_free(state);
}

/* Renders a note: an element and what follows it. */
static int json_element_note(void *state, const void *data, size_t len _unused_, struct buf *out,
			     uint64_t *units)
{
	const struct function_element *e = data;

	return json_writer_element(state, e, e + 1, out, units);
}

_cold_ static int json_full(struct sink_json *s, struct error *err)
{
	if (s->segment) {
		segment_fill(s->segment);
		return 0;
	}
	if (s->events_max && s->events >= s->events_max)
		error_set(err, -EOVERFLOW, "the trace has more than %llu events",
			  (unsigned long long)s->events_max);
	else
		error_set(err, -EOVERFLOW,
			  "the trace is longer than the %llu characters that a viewer can open",
			  (unsigned long long)s->string_max);
	error_hint(err, "write it as .pftrace or .txt, or record for a shorter time or fewer "
			"events");
	return -EOVERFLOW;
}

int json_check_room(struct sink_json *s, struct error *err)
{
	uint64_t used = s->units + json_spool_bytes(s->spool) + json_tail_frames(&s->tail);

	return unlikely(used > s->room) ? json_full(s, err) : 0;
}

static int json_took(struct sink *sink, uint64_t units, struct error *err)
{
	struct sink_json *s = to_json(sink);

	s->units += units;
	/* After the events, skip the check: a full file must still be closed. */
	return s->events_ended ? 0 : json_check_room(s, err);
}

#define THREAD_OPS                                                                                 \
	.begin = json_begin_thread, .end = json_end_thread, .took = json_took,                     \
	.failure = "can't write the trace"

const struct render_ops json_text_render_ops = {
	THREAD_OPS,
	.event = json_writer_line,
	.loss = json_writer_loss,
};

const struct render_ops json_element_render_ops = {
	THREAD_OPS,
	.event = json_writer_hit,
	.note = json_element_note,
};

/* After an append to the spool; r: its result. */
static int json_settle_spool(struct sink_json *s, int r, struct error *err)
{
	if (r == 0)
		r = json_spool_settle(s->spool);
	return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
}

static int json_note_more(struct sink_json *s, const struct function_element *e, const void *more,
			  size_t len, struct error *err)
{
	struct {
		struct function_element e;
		union function_more more;
	} note = { .e = *e };

	memcpy(&note.more, more, len);
	return render_note(s->render, &note, sizeof(note.e) + len, err);
}

/* Takes functions' elements from the thread that has the turn. */
int json_put_element(void *userdata, const struct function_element *e, const void *more,
		     struct error *err)
{
	struct sink_json *s = userdata;
	size_t len = function_more_size(e);
	uint64_t units = 0;

	if (s->elements_first)
		return likely(!len) ? render_note(s->render, e, sizeof(*e), err)
				    : json_note_more(s, e, more, len, err);
	return json_settle_spool(
		s, json_writer_element(s->aside, e, more, json_spool_buf(s->spool), &units), err);
}

static _noinline_ int json_put_function(struct sink_json *s, const struct trace_event *ev,
					struct error *err)
{
	int r;

	if (s->elements_first && json_functions_pass_hit(s->functions, ev))
		return render_event(s->render, ev, err);
	r = render_learn(s->render, ev->pid, ev->rec.ts, err);
	if (r == 0)
		r = json_functions_event(s->functions, ev, err);
	return r < 0 ? r : json_check_room(s, err);
}

/* Writes an element that is already text, after all earlier output. */
static int json_append_element(struct sink_json *s, const struct buf *element, struct error *err)
{
	int r = s->elements_first ? render_drain(s->render, err) : 0;

	if (r < 0)
		return r;
	if (!s->elements_first) {
		buf_append(json_spool_buf(s->spool), element->data, element->len);
		return json_settle_spool(s, 0, err);
	}
	buf_append(&s->out->buf, element->data, element->len);
	s->units += element->len;
	r = output_settle(s->out);
	return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
}

/* 1: written as an element, not as a line. */
static int json_put_atrace(struct sink_json *s, const struct trace_event *ev, struct error *err)
{
	struct buf *element = &s->aside->scratch;
	int r = render_learn(s->render, ev->pid, ev->rec.ts, err);

	if (r < 0)
		return r;
	buf_clear(element);
	r = json_atrace_event(s->atrace, ev, element);
	if (r <= 0)
		return r < 0 ? error_errno(err, r, "can't write the trace") : 0;
	r = json_append_element(s, element, err);
	return r < 0 ? r : json_check_room(s, err) ?: 1;
}

/* For a text that follows the elements. */
static _noinline_ int json_put_line_aside(struct sink_json *s, const struct trace_event *ev,
					  struct error *err)
{
	uint64_t units = 0;
	int r = s->array ? 0 : render_learn(s->render, ev->pid, ev->rec.ts, err);

	if (r < 0 || s->array)
		return r;
	r = json_settle_spool(s, json_writer_line(s->aside, ev, json_spool_buf(s->spool), &units),
			      err);
	return r < 0 ? r : json_check_room(s, err);
}

/* A user's mark. */
static _noinline_ int json_put_print(struct sink_json *s, const struct trace_event *ev,
				     struct error *err)
{
	int r = json_put_atrace(s, ev, err);

	if (r)
		return MIN(r, 0);
	if (s->elements_first)
		return json_put_line_aside(s, ev, err);
	/* Syncs: the first of each id counts, so one thread must see them all. */
	return portable_may_sync(&ev->rec) ? render_event_now(s->render, ev, err)
					   : render_event(s->render, ev, err);
}

_hot_ int json_event(struct sink *sink, const struct trace_event *ev, struct error *err)
{
	struct sink_json *s = to_json(sink);
	struct trace_event later;
	int r;

	/* Trace Viewer rejects the whole trace if a CPU's time goes back. */
	if (unlikely(ev->rec.ts < s->last_ts)) {
		later = *ev;
		later.rec.ts = s->last_ts;
		ev = &later;
	}
	s->last_ts = ev->rec.ts;
	if (unlikely(++s->events >= s->events_max && s->events_max)) {
		r = json_full(s, err);
		if (r < 0)
			return r;
	}
	if (json_functions_has(s->functions, ev))
		return json_put_function(s, ev, err);
	if (unlikely(ev->desc && ev->desc == s->print))
		return json_put_print(s, ev, err);
	if (unlikely(s->elements_first))
		return json_put_line_aside(s, ev, err);
	return render_event(s->render, ev, err);
}

int json_loss(struct sink *sink, uint32_t cpu, uint64_t before_ts _unused_,
	      uint64_t after_ts _unused_, uint64_t count, struct error *err)
{
	struct sink_json *s = to_json(sink);
	uint64_t units = 0;

	json_functions_loss(s->functions, s->last_ts);
	if (s->array)
		return 0;
	if (!s->elements_first)
		return render_loss(s->render, cpu, count, err);
	return json_settle_spool(
		s, json_writer_loss(s->aside, cpu, count, json_spool_buf(s->spool), &units), err);
}
