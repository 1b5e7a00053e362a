/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The capture stream itself. The events are decoded all the same, for nothing but their
 * account: whoever keeps a recording is told what is in it.
 */
#include "export/index.h"
#include "export/sinks.h"
#include "util/io.h"

struct sink_stream {
	struct sink sink;
	struct output *out;
	uint64_t at; /* where in the stream the rest begins */
};

static int stream_open(struct sink **ret, const struct trace_info *info _unused_,
		       const struct export_options *o _unused_, struct output *out,
		       struct error *err)
{
	struct sink_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return error_errno(err, -ENOMEM, "can't begin the copy");
	s->out = out;
	*ret = &s->sink;
	return 0;
}

static int stream_event(struct sink *s _unused_, const struct trace_event *ev _unused_,
			struct error *err _unused_)
{
	return 0;
}

static int stream_loss(struct sink *s _unused_, uint32_t cpu _unused_, uint64_t before_ts _unused_,
		       uint64_t after_ts _unused_, uint64_t count _unused_,
		       struct error *err _unused_)
{
	return 0;
}

static int stream_close(struct sink *s _unused_, const struct export_result *result _unused_,
			struct error *err _unused_)
{
	return 0;
}

static void stream_free(struct sink *s)
{
	free(container_of(s, struct sink_stream, sink));
}

static int stream_copy(struct sink *sink, const struct stream_index *index, bool last _unused_,
		       struct error *err)
{
	struct sink_stream *s = container_of(sink, struct sink_stream, sink);
	const struct stream_reader *reader = index->reader;
	struct output *out = s->out;

	while (s->at < reader->offset) {
		size_t want = (size_t)MIN(reader->offset - s->at, (uint64_t)OUTPUT_HIGH_WATER);
		char *p = buf_reserve(&out->buf, want);
		ssize_t n;
		int r;

		if (!p)
			return error_errno(err, -ENOMEM, "can't copy the stream");
		n = pread_full(reader->fd, p, want, (off_t)s->at);
		if (n <= 0)
			return error_errno(err, n < 0 ? (int)n : -EIO, "can't read the stream");
		out->buf.len += (size_t)n;
		s->at += (uint64_t)n;
		r = output_settle(out);
		if (r < 0)
			return error_errno(err, r, "can't write the stream");
	}
	return 0;
}

const struct sink_ops sink_stream_ops = {
	.format = { "traced", ".traced", "the capture stream itself, for tracectl convert", NULL,
		    true },
	.copy = stream_copy,
	.keeps_marks = true,
	.open = stream_open,
	.event = stream_event,
	.loss = stream_loss,
	.close = stream_close,
	.free = stream_free,
};
