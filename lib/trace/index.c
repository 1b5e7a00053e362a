/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/index.h"

#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>

#include "base/io.h"
#include "base/plural.h"
#include "base/vec.h"
#include "trace/host_clock.h"
#include "trace/info_messages.h"
#include "trace/load.h"

#define WARNINGS_MAX 40

int stream_index_warn(struct stream_index *index, const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	/* A badly damaged stream would give a warning for each chunk. */
	if (index->warning_count == WARNINGS_MAX)
		return 0;
	if (index->warning_count == WARNINGS_MAX - 1)
		fmt = "further warnings are not listed";
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	if (vec_reserve_exact(index->warnings, index->warning_count, 1) < 0) {
		free(text);
		return -ENOMEM;
	}
	index->warnings[index->warning_count++] = text;
	return 0;
}

int stream_index_warn_count(struct stream_index *index, uint64_t count, const char *one,
			    const char *more)
{
	return count ? stream_index_warn(index, "%" PRIu64 " %s", count, plural(count, one, more))
		     : 0;
}

int stream_index_open(struct stream_index *ret, struct stream_reader *reader,
		      const struct index_options *options, struct error *err)
{
	*ret = (struct stream_index){ .reader = reader,
				      .part = options->part,
				      .skip = options->skip_from ? UINT64_MAX : 0,
				      .skip_from = options->skip_from,
				      .host = options->host };
	if (options->part.bytes)
		reader->size = MIN(reader->size, options->part.bytes);
	if (loader_new(&ret->loader, ret, reader, options) < 0)
		return error_errno(err, -ENOMEM, "can't load the capture stream");
	return 0;
}

void stream_index_flushed(struct stream_index *index, uint64_t offset)
{
	index->ripe = index->last_flush;
	index->last_flush = offset;
}

/* True if the recorder failed. end NULL: unknown. */
static bool recording_failed(const Traced__Capture__End *end)
{
	return end && (end->reason == TRACED__CAPTURE__END__REASON__NO_SPACE ||
		       end->reason == TRACED__CAPTURE__END__REASON__FAILED);
}

/* Adds a warning for the reason (r, why) that the stream cannot be read further. */
static int index_judge_end(struct stream_index *index, int r, const struct error *why)
{
	const Traced__Capture__End *end = index->info.end;

	index->incomplete |= r < 0 || !end || recording_failed(end) || index->reader->hole;
	if (index->reader->hole)
		stream_index_warn(index,
				  "a part of it was freed during the recording, once it had been "
				  "read: its events are missing here");
	/* They come last. */
	if ((r < 0 || !end) && !event_table_has_symbols(index->info.events))
		stream_index_warn(index, "the kernel's symbols are missing with the recording's "
					 "end: its addresses have no names");
	if (r < 0)
		return stream_index_warn(index, "%s: everything after it is missing", why->message);
	if (recording_failed(end))
		return stream_index_warn(index, "the recording ended early: %s",
					 end->reason == TRACED__CAPTURE__END__REASON__NO_SPACE
						 ? "no space was left"
						 : "it, or its output, failed");
	if (!end)
		return stream_index_warn(index, "the recording was not closed properly: its last "
						"moments may be missing");
	return 0;
}

/*
 * Behind END there is at most a chunk HOST. Returns true if the read that failed was of other
 * bytes: then the recording is whole.
 */
static bool index_is_past_end(struct stream_index *index)
{
	const struct stream_reader *reader = index->reader;
	const uint64_t rest = reader->size - reader->offset;
	const uint32_t magic = htole32(CHUNK_MAGIC);
	char data[STREAM_MAGIC_SIZE];
	ssize_t n = pread_full(reader->fd, data, sizeof(data), (off_t)reader->offset);

	if (!index->info.end || n <= 0 || memcmp(data, &magic, MIN((size_t)n, sizeof(magic))) == 0)
		return false;
	if (stream_begins(data, (size_t)n)) {
		index->incomplete = true;
		stream_index_warn(index,
				  "another capture follows the recording's end: it is left out "
				  "(the last %" PRIu64 " bytes of the file)",
				  rest);
	} else {
		stream_index_warn(index, "%" PRIu64 " byte%s the recording's end: %s ignored", rest,
				  plural(rest, " follows", "s follow"),
				  plural(rest, "it is", "they are"));
	}
	return true;
}

bool stream_index_skips(const struct stream_index *index, const struct chunk *chunk)
{
	return chunk->offset < index->skip &&
	       (chunk->type == CHUNK_FLUSH || chunk->type == CHUNK_MARKS ||
		chunk->type == CHUNK_SAMPLES || chunk->type == CHUNK_POLLS ||
		stream_reader_has_events(index->reader, chunk));
}

int stream_index_next(struct stream_index *index, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	uint64_t flush = index->last_flush;
	struct chunk chunk;
	int r;

	while ((r = stream_reader_next(index->reader, &chunk, &why)) > 0) {
		if (chunk.type == CHUNK_FLUSH && chunk.offset >= index->skip_from)
			index->skip = MIN(index->skip, chunk.offset);
		if (stream_index_skips(index, &chunk))
			continue;
		r = loader_add(index->loader, &chunk, err);
		if (r < 0)
			return r;
		if (index->last_flush != flush) {
			r = loader_seal(index->loader, err);
			if (r < 0)
				return r;
			event_table_expect_symbols(index->info.events);
			return 1;
		}
	}
	/* The chunk is not complete yet, or the stream has ended in some way. */
	if (r == 0 || r == -ENODATA || r == -EBADMSG) {
		index->ended |= index->info.end || r == -EBADMSG;
		return 0;
	}
	return error_move(err, &why);
}

static int index_end_part(struct stream_index *index)
{
	Traced__Capture__End *end = index->info.end ? NULL : malloc(sizeof(*end));

	if (!end)
		return index->info.end ? 0 : -ENOMEM;
	traced__capture__end__init(end);
	end->reason = TRACED__CAPTURE__END__REASON__SNAPSHOT;
	end->start_boot_ns = index->part.start_boot_ns;
	end->boot_ns = index->part.boot_ns;
	index->info.end = end;
	return 0;
}

int stream_index_finish(struct stream_index *index, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	struct chunk chunk;
	int r;

	while ((r = stream_reader_next(index->reader, &chunk, &why)) > 0) {
		r = stream_index_skips(index, &chunk) ? 0 : loader_add(index->loader, &chunk, err);
		if (r < 0)
			return r;
	}
	if (r < 0 && r != -ENODATA && r != -EBADMSG)
		return error_move(err, &why);
	if (r < 0 && index_is_past_end(index))
		r = 0;
	if (index->part.bytes && index_end_part(index) < 0)
		return error_errno(err, -ENOMEM, "can't load the capture stream");
	index->ended = true;
	index->ripe = UINT64_MAX;
	if (loader_seal(index->loader, err) < 0)
		return -EBADMSG;
	if (index->host && host_clock_move(index->host, &index->info, err) < 0)
		return -EINVAL;
	return index_judge_end(index, r, &why);
}

int stream_index_settle(struct stream_index *index)
{
	return loader_settle(index->loader);
}

void stream_index_forget_readings(struct stream_index *index)
{
	loader_forget_readings(index->loader);
}

void stream_index_deinit(struct stream_index *index)
{
	trace_info_deinit(&index->info);
	for (int i = 0; i < BUFFER_COUNT; i++)
		ring_index_deinit(&index->rings[i]);
	mark_ring_list_deinit(&index->marks);
	ring_index_deinit(&index->samples);
	chunk_list_deinit(&index->polls);
	for (size_t i = 0; i < index->warning_count; i++)
		free(index->warnings[i]);
	free(index->warnings);
	loader_free(index->loader);
	*index = (struct stream_index){ 0 };
}
