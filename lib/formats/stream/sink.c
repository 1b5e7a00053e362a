/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes the capture stream itself. Events are decoded only to count them: the user learns what is
 * in the recording.
 */
#include "export/sink.h"
#include "base/io.h"
#include "stream/pack.h"
#include "stream/writer.h"
#include "trace/index.h"

struct sink_stream {
	struct sink sink;
	struct output *out;
	uint64_t at; /* stream offset of the part not yet copied */
	struct buf payload, packed;
};

static int stream_open(struct sink **ret, const struct sink_env *env, struct error *err)
{
	struct sink_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return error_errno(err, -ENOMEM, "can't begin the copy");
	s->out = env->out;
	*ret = &s->sink;
	return 0;
}

static int stream_close(struct sink *s _unused_, const struct export_result *result _unused_,
			struct error *err _unused_)
{
	return 0;
}

static void stream_free(struct sink *s)
{
	struct sink_stream *stream = container_of(s, struct sink_stream, sink);

	buf_deinit(&stream->payload);
	buf_deinit(&stream->packed);
	free(stream);
}

static int stream_cant_write(int r, struct error *err)
{
	return r < 0 ? error_errno(err, r, "can't write the stream") : 0;
}

/* Copies bytes unchanged, up to `until`. */
static int stream_copy_bytes(struct sink_stream *s, const struct stream_reader *reader,
			     uint64_t until, struct error *err)
{
	struct output *out = s->out;

	while (s->at < until) {
		size_t want = (size_t)MIN(until - s->at, (uint64_t)OUTPUT_HIGH_WATER);
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
		r = stream_cant_write(output_settle(out), err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int stream_put_chunk(struct sink_stream *s, const struct chunk_header *h,
			    const struct iovec *payload, struct error *err)
{
	static const uint8_t zeros[CHUNK_ALIGN];
	struct output *out = s->out;

	buf_append(&out->buf, h, sizeof(*h));
	buf_append(&out->buf, payload->iov_base, payload->iov_len);
	buf_append(&out->buf, zeros, stream_padding(payload->iov_len));
	return stream_cant_write(buf_error(&out->buf) ?: output_settle(out), err);
}

/* Copies a chunk for keeping: sub-buffers inline, symbols compressed. */
static int stream_copy_chunk(struct sink_stream *s, const struct stream_reader *reader,
			     const struct chunk *chunk, struct error *err)
{
	struct chunk_header h;
	struct iovec payload;
	int r;

	r = stream_reader_load(reader, chunk, &s->payload, err);
	if (r < 0)
		return r;
	payload = (struct iovec){ s->payload.data, s->payload.len };
	r = chunk->type == CHUNK_KALLSYMS
		    ? stream_pack(payload.iov_base, payload.iov_len, &s->packed)
		    : 0;
	if (r < 0)
		return stream_cant_write(r, err);
	if (r)
		payload = (struct iovec){ s->packed.data, s->packed.len };
	h = stream_chunk_header(chunk->type, r ? CHUNK_ZSTD : 0, chunk->cpu, &payload, 1);
	return stream_put_chunk(s, &h, &payload, err);
}

/* For an imported stream, which is complete. */
static int stream_copy_chunks(struct sink_stream *s, const struct stream_reader *reader,
			      struct error *err)
{
	struct stream_reader own = *reader;
	struct chunk chunk;
	int r = 0;

	own.offset = STREAM_MAGIC_SIZE;
	while (own.offset < reader->offset && (r = stream_reader_next(&own, &chunk, err)) > 0) {
		if (chunk.type != CHUNK_SUBBUFS && chunk.type != CHUNK_KALLSYMS)
			continue;
		r = stream_copy_bytes(s, reader, chunk.offset, err);
		if (r == 0)
			r = stream_copy_chunk(s, reader, &chunk, err);
		if (r < 0)
			return r;
		s->at = own.offset;
	}
	return r < 0 ? r : stream_copy_bytes(s, reader, reader->offset, err);
}

/* The copied part has no END yet. */
static int stream_end_part(struct sink_stream *s, const Traced__Capture__End *end,
			   struct error *err)
{
	size_t len = traced__capture__end__get_packed_size(end);
	struct iovec payload;
	struct chunk_header h;
	char *p;

	buf_clear(&s->payload);
	p = buf_reserve(&s->payload, len);
	if (!p)
		return error_errno(err, -ENOMEM, "can't copy the stream");
	traced__capture__end__pack(end, (uint8_t *)p);
	payload = (struct iovec){ p, len };
	h = stream_chunk_header(CHUNK_END, 0, 0, &payload, 1);
	return stream_put_chunk(s, &h, &payload, err);
}

/* Copies all but what the index skips. */
static int stream_copy_kept(struct sink_stream *s, const struct stream_index *index,
			    struct error *err)
{
	struct stream_reader own = *index->reader;
	const uint64_t until = own.offset;
	struct chunk chunk;
	int r = 0;

	own.offset = MAX(s->at, (uint64_t)STREAM_MAGIC_SIZE);
	while (own.offset < MIN(until, index->skip) &&
	       (r = stream_reader_next(&own, &chunk, err)) > 0) {
		if (!stream_index_skips(index, &chunk))
			continue;
		r = stream_copy_bytes(s, index->reader, chunk.offset, err);
		if (r < 0)
			return r;
		s->at = own.offset;
	}
	return r < 0 ? r : stream_copy_bytes(s, index->reader, until, err);
}

static int stream_copy(struct sink *sink, const struct stream_index *index, bool last,
		       struct error *err)
{
	struct sink_stream *s = container_of(sink, struct sink_stream, sink);
	const struct stream_reader *reader = index->reader;
	int r = reader->pages_fd ? stream_copy_chunks(s, reader, err)
				 : stream_copy_kept(s, index, err);

	return r == 0 && last && index->part.bytes ? stream_end_part(s, index->info.end, err) : r;
}

const struct sink_ops sink_stream_ops = {
	.format = {
		.name = "traced",
		.extension = ".traced",
		.summary = "the capture stream itself, for tracectl convert",
		.raw_records = true,
		.recording = true,
	},
	.copy = stream_copy,
	.keeps_marks = true,
	.has_histograms = true,
	.open = stream_open,
	.event = sink_skip_event,
	.loss = sink_skip_loss,
	.close = stream_close,
	.free = stream_free,
};
