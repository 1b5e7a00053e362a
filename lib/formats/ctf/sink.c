/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sink for the Common Trace Format: a directory with one file per CPU, and the metadata. */
#include <inttypes.h>
#include <string.h>

#include "base/parse.h"
#include "base/vec.h"
#include "export/sink.h"
#include "formats/ctf/ctf.h"
#include "marks/clock_map.h"

#define IDS 65536
/* Bytes of all streams' packets together, and of one packet. */
#define PACKETS_MAX (16U << 20)
#define PACKET_MAX (64U << 10)
#define PACKET_MIN (4U << 10)

#define CONTEXT_CACHE 256 /* a power of two */
#define CONTEXT_MAX (2 * sizeof(int32_t) + sizeof(((struct task *)0)->comm))

/* The task part of an event's context, as written. */
struct context {
	uint64_t from_ts, until_ts; /* lifetime of the task it names */
	int32_t pid;
	uint32_t len; /* 0: empty */
	char bytes[CONTEXT_MAX];
};

/* Events of our own, for facts that CTF has no other place for. */
enum own_event { EVENTS_LOST, TIME_WENT_BACK, TIME_CUT, OWN_EVENTS };

struct sink_ctf {
	struct sink sink;
	struct ctf c;
	struct printer *printer;		   /* owned */
	struct ctf_stream **streams;		   /* owned; by CPU */
	size_t stream_count;			   /* entries in streams */
	size_t cpu_count;			   /* streams in use */
	struct ctf_class **classes, **raw_classes; /* owned; IDS entries, by the kernel's id */
	struct ctf_marks *marks;		   /* owned */
	uint32_t own_classes[OWN_EVENTS];	   /* class id + 1; 0: none yet */
	uint64_t last_ts;
	struct context cache[CONTEXT_CACHE];
};

static struct sink_ctf *to_ctf(struct sink *s)
{
	return container_of(s, struct sink_ctf, sink);
}

static int ctf_cant_write(int r, struct error *err)
{
	if (r == -EOVERFLOW)
		return error_set(err, r, "too many kinds of events for a CTF trace");
	return r < 0 ? error_errno(err, r, "can't write the CTF trace") : 0;
}

static void ctf_free(struct sink *sink)
{
	struct sink_ctf *s = to_ctf(sink);

	for (size_t i = 0; i < s->stream_count; i++) {
		if (s->streams[i])
			ctf_stream_deinit(s->streams[i]);
		free(s->streams[i]);
	}
	free(s->streams);
	for (size_t i = 0; s->classes && i < IDS; i++)
		ctf_class_free(s->classes[i]);
	for (size_t i = 0; s->raw_classes && i < IDS; i++)
		ctf_class_free(s->raw_classes[i]);
	free(s->classes);
	free(s->raw_classes);
	ctf_marks_free(s->marks);
	printer_free(s->printer);
	buf_deinit(&s->c.classes);
	free(s);
}

/* Begin of the recording, if known. */
static uint64_t ctf_find_start(const struct trace_info *info)
{
	_cleanup_(clock_map_deinit) struct clock_map map = { 0 };

	if (clock_map_of(&map, info, CLOCK_BOOTTIME) < 0 || !info->clock_count)
		return 0;
	if (map.count)
		return map.points[0].to;
	return info->clocks[0]->n_readings ? info->clocks[0]->readings[0]->boot_before_ns : 0;
}

/* Divides PACKETS_MAX by the CPUs. There may be more than the header says. */
static void ctf_share_packets(struct sink_ctf *s)
{
	size_t cpus = MAX(MAX((size_t)s->c.info->header->cpus, s->cpu_count), (size_t)1);

	s->c.packet_max = (uint32_t)MIN(MAX(PACKETS_MAX / cpus, PACKET_MIN), PACKET_MAX);
}

static int ctf_open(struct sink **ret, const struct sink_env *env, struct error *err)
{
	const struct trace_info *info = env->info;
	struct sink_ctf *s;
	int r;

	s = calloc(1, sizeof(*s));
	if (!s)
		return ctf_cant_write(-ENOMEM, err);
	s->c.info = info;
	s->c.out = env->out;
	s->c.swap = info->header->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	ctf_share_packets(s);
	s->c.start_ts = ctf_find_start(info);
	s->c.max_ts = ctf_max_time(&s->c);
	s->classes = calloc(IDS, sizeof(*s->classes));
	s->raw_classes = calloc(IDS, sizeof(*s->raw_classes));
	r = s->classes && s->raw_classes ? 0 : -ENOMEM;
	if (r == 0)
		r = printer_new(&s->printer, info->events);
	if (r == 0)
		r = ctf_marks_new(&s->marks, &s->c);
	if (r < 0)
		ctf_free(&s->sink);
	else
		*ret = &s->sink;
	return ctf_cant_write(r, err);
}

static int ctf_add_stream(struct sink_ctf *s, uint32_t cpu, struct ctf_stream **ret)
{
	struct ctf_stream *stream;

	if (cpu > CPU_LIST_MAX)
		return -EINVAL;
	if (cpu >= s->stream_count) {
		size_t count = MAX((size_t)cpu + 1, s->stream_count * 2);
		size_t more = count - s->stream_count;

		if (vec_reserve_exact(s->streams, s->stream_count, more) < 0)
			return -ENOMEM;
		memset(s->streams + s->stream_count, 0, more * sizeof(*s->streams));
		s->stream_count = count;
	}
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return -ENOMEM;
	snprintf(stream->name, sizeof(stream->name), "cpu_%" PRIu32, cpu);
	stream->stream_class = CTF_KERNEL;
	stream->cpu = cpu;
	*ret = s->streams[cpu] = stream;
	s->cpu_count++;
	ctf_share_packets(s);
	return 0;
}

static inline int ctf_find_stream(struct sink_ctf *s, uint32_t cpu, struct ctf_stream **ret)
{
	*ret = cpu < s->stream_count ? s->streams[cpu] : NULL;
	return likely(*ret) ? 0 : ctf_add_stream(s, cpu, ret);
}

/* Uses the same task names as the text. */
_cold_ static void fill_context(const struct ctf *c, struct context *k, int32_t pid, uint64_t ts)
{
	struct task *task = pid > 0 ? task_table_find(c->info->tasks, pid, ts) : NULL;
	const char *comm = pid == 0 ? "<idle>" : pid < 0 ? "<XXX>" : "<...>";
	uint32_t words[2] = { ctf_u32(c, (uint32_t)pid) };
	size_t len;

	*k = (struct context){ .pid = pid, .until_ts = UINT64_MAX };
	if (task) {
		task_see(task);
		if (task->comm[0])
			comm = task->comm;
		words[1] = ctf_u32(c, (uint32_t)task->tgid);
		/* The oldest known life also covers all earlier times. */
		k->from_ts = task_is_oldest(task) ? 0 : task->from_ts;
		k->until_ts = task_table_until(task);
	}
	len = strnlen(comm, sizeof(task->comm) - 1);
	memcpy(k->bytes, words, sizeof(words));
	memcpy(k->bytes + sizeof(words), comm, len);
	k->len = (uint32_t)(sizeof(words) + len + 1);
}

static void ctf_put_context(struct sink_ctf *s, const struct trace_event *ev, struct buf *out)
{
	struct context *k = &s->cache[(uint32_t)ev->pid & (CONTEXT_CACHE - 1)];
	char *p = buf_reserve(out, 2 + CONTEXT_MAX);

	if (unlikely(k->pid != ev->pid || !k->len || ev->rec.ts < k->from_ts ||
		     ev->rec.ts >= k->until_ts))
		fill_context(&s->c, k, ev->pid, ev->rec.ts);
	if (unlikely(!p))
		return;
	p[0] = (char)ev->flags;
	p[1] = (char)ev->preempt_count;
	memcpy(p + 2, k->bytes, k->len);
	out->len += 2 + k->len;
}

static int ctf_find_class(struct sink_ctf *s, struct ctf_class **classes,
			  const struct trace_event *ev, const struct ctf_class **ret)
{
	int r = 0;

	if (unlikely(!classes[ev->id]))
		r = ctf_class_new(&classes[ev->id], &s->c, ev->id, ev->desc,
				  classes == s->raw_classes);
	*ret = classes[ev->id];
	return r;
}

static int ctf_put_event(struct sink_ctf *s, struct ctf_stream *stream,
			 const struct trace_event *ev, struct ctf_class **classes)
{
	size_t start = stream->packet.len;
	const struct ctf_class *class;
	int r = ctf_find_class(s, classes, ev, &class);

	if (r == 0)
		r = ctf_stream_event(&s->c, stream, ev->rec.ts, class->id);
	if (r < 0)
		return r;
	ctf_put_context(s, ev, &stream->packet);
	r = ctf_class_put(&s->c, class, s->printer, &ev->rec, &stream->packet);
	/* Undo: the event is written in another class. */
	if (unlikely(r == -EBADMSG))
		stream->packet.len = start;
	return r;
}

static int ctf_make_own_class(struct sink_ctf *s, enum own_event event)
{
	static const struct {
		const char *name, *field;
	} classes[OWN_EVENTS] = {
		[EVENTS_LOST] = { "traced:events_lost", "\t\tuint64_t _count;\n" },
		[TIME_WENT_BACK] = { "traced:time_went_back", "\t\tuint64_t _trace_time;\n" },
		[TIME_CUT] = { "traced:time_cut", "\t\tuint64_t _trace_time;\n" },
	};
	const char *name = classes[event].name;
	int64_t id = ctf_begin_class(&s->c, CTF_KERNEL, name, strlen(name));
	int r;

	if (id < 0)
		return (int)id;
	buf_puts(&s->c.classes, classes[event].field);
	ctf_end_class(&s->c);
	r = buf_error(&s->c.classes);
	if (r < 0)
		return r;
	s->own_classes[event] = (uint32_t)id + 1;
	return 0;
}

static int ctf_put_own(struct sink_ctf *s, struct ctf_stream *stream, enum own_event event,
		       uint64_t ts, uint64_t value)
{
	const struct trace_event nobody = { .rec.ts = ts, .pid = -1 };
	int r = s->own_classes[event] ? 0 : ctf_make_own_class(s, event);

	if (r == 0)
		r = ctf_stream_event(&s->c, stream, ts, s->own_classes[event] - 1);
	if (r < 0)
		return r;
	ctf_put_context(s, &nobody, &stream->packet);
	ctf_put_u64(&s->c, &stream->packet, value);
	return 0;
}

_hot_ static int ctf_event(struct sink *sink, const struct trace_event *ev, struct error *err)
{
	struct sink_ctf *s = to_ctf(sink);
	struct ctf_stream *stream;
	int r = ctf_find_stream(s, ev->cpu, &stream);

	if (unlikely(r < 0))
		return ctf_cant_write(r, err);
	s->last_ts = ev->rec.ts;
	/*
	 * Readers reject times that go back. The real time is in this event; the next one gets the
	 * stream's last time.
	 */
	if (unlikely(ev->rec.ts < stream->last_ts))
		r = ctf_put_own(s, stream, TIME_WENT_BACK, ev->rec.ts, ev->rec.ts);
	else if (unlikely(ev->rec.ts > s->c.max_ts))
		r = ctf_put_own(s, stream, TIME_CUT, s->c.max_ts, ev->rec.ts);
	if (likely(r == 0))
		r = ctf_put_event(s, stream, ev, s->classes);
	if (unlikely(r == -EBADMSG))
		r = ctf_put_event(s, stream, ev, s->raw_classes);
	if (likely(r == 0))
		r = ctf_stream_settle(&s->c, stream);
	return likely(r == 0) ? 0 : ctf_cant_write(r, err);
}

static int ctf_loss(struct sink *sink, uint32_t cpu, uint64_t before_ts, uint64_t after_ts,
		    uint64_t count, struct error *err)
{
	struct sink_ctf *s = to_ctf(sink);
	bool known = count != UINT64_MAX;
	struct ctf_stream *stream;
	uint64_t from = before_ts, to = after_ts == UINT64_MAX ? s->last_ts : after_ts;
	int r = ctf_find_stream(s, cpu, &stream);

	if (!from)
		from = MIN(s->c.start_ts ?: to, to);
	/*
	 * Unknown count: the packet's counter needs a number, so it counts one; the event has none.
	 */
	if (r == 0)
		r = ctf_stream_begin_gap(&s->c, stream, from, known ? count : 1);
	if (r == 0)
		r = ctf_put_own(s, stream, EVENTS_LOST, from, known ? count : 0);
	if (r == 0)
		r = ctf_stream_end_gap(&s->c, stream, to);
	return ctf_cant_write(r, err);
}

static int ctf_mark(struct sink *sink, const struct mark *mark, struct error *err)
{
	return ctf_cant_write(ctf_marks_put(to_ctf(sink)->marks, mark), err);
}

static int ctf_warn(struct sink *sink, struct stream_index *index)
{
	return stream_index_warn_count(
		index, to_ctf(sink)->c.times_cut,
		"time is later than readers of CTF can count: it is cut, and traced:time_cut "
		"before an event has it",
		"times are later than readers of CTF can count: they are cut, and traced:time_cut "
		"before an event has its own");
}

static int ctf_close(struct sink *sink, const struct export_result *result, struct error *err)
{
	struct sink_ctf *s = to_ctf(sink);
	struct output *out = s->c.out;
	int r = ctf_marks_flush(s->marks);

	for (size_t i = 0; r == 0 && i < s->stream_count; i++)
		if (s->streams[i])
			r = ctf_stream_flush(&s->c, s->streams[i]);
	if (r == 0)
		r = output_file(out, "metadata");
	if (r == 0)
		r = ctf_put_metadata(&s->c, result, &out->buf);
	if (r == 0)
		r = buf_error(&s->c.classes);
	if (r == 0)
		buf_append(&out->buf, s->c.classes.data, s->c.classes.len);
	if (r == 0)
		r = output_flush(out, true);
	return ctf_cant_write(r, err);
}

const struct sink_ops sink_ctf_ops = {
	.format = {
		.name = "ctf",
		.extension = ".ctf",
		.summary = "a directory of the Common Trace Format, for Babeltrace and Trace Compass",
		.raw_records = true,
		.at_end = true,
		.directory = true,
	},
	.open = ctf_open,
	.event = ctf_event,
	.loss = ctf_loss,
	.mark = ctf_mark,
	.warn = ctf_warn,
	.close = ctf_close,
	.free = ctf_free,
};
