/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stream/writer.h"

#include <limits.h>
#include <string.h>

#include "base/io.h"
#include "stream/chunk.h"
#include "stream/pack.h"

static const uint8_t zeros[CHUNK_ALIGN];

/* Chunks that close a stream may exceed the others' limit: they must fit after those. */
static uint64_t writer_limit(const struct stream_writer *w, enum chunk_type type)
{
	if (!w->limit)
		return UINT64_MAX;
	switch (type) {
	case CHUNK_CLOCKS:
	case CHUNK_STATS:
	case CHUNK_NOTE:
	case CHUNK_END:
		return w->limit;
	default:
		return w->limit - MIN(w->limit, (uint64_t)STREAM_RESERVE);
	}
}

static size_t iov_length(const struct iovec *iov, int count)
{
	size_t length = 0;

	for (int i = 0; i < count; i++)
		length += iov[i].iov_len;
	return length;
}

struct chunk_header stream_chunk_header(enum chunk_type type, unsigned flags, uint32_t cpu,
					const struct iovec *payload, int count)
{
	struct chunk_header h = {
		.magic = htole32(CHUNK_MAGIC),
		.type = htole16((uint16_t)type),
		.flags = htole16((uint16_t)flags),
		.length = htole32((uint32_t)iov_length(payload, count)),
		.cpu = htole32(cpu),
	};

	h.hash = htole64(chunk_hash(&h, payload, count));
	return h;
}

/* iov[0] is for the header and iov[count + 1] for the padding. The payload is in between. */
static int writer_write_chunk(struct stream_writer *w, enum chunk_type type, unsigned flags,
			      uint32_t cpu, struct iovec *iov, int count)
{
	size_t length = iov_length(iov + 1, count);
	struct chunk_header h;
	uint64_t total;
	int r;

	if (w->failed)
		return w->failed;
	if (length > CHUNK_PAYLOAD_MAX)
		return -E2BIG;
	total = sizeof(h) + length + stream_padding(length);
	if (w->bytes + total > writer_limit(w, type))
		return -EDQUOT;

	h = stream_chunk_header(type, flags, cpu, iov + 1, count);
	iov[0] = (struct iovec){ .iov_base = &h, .iov_len = sizeof(h) };
	iov[count + 1] = (struct iovec){
		.iov_base = (void *)(uintptr_t)zeros,
		.iov_len = stream_padding(length),
	};
	r = writev_full(w->fd, iov, count + 2);
	if (r < 0) {
		w->failed = r;
		return r;
	}
	w->bytes += total;
	return 0;
}

int stream_writer_init(struct stream_writer *w, int fd, uint64_t limit)
{
	*w = (struct stream_writer){ .fd = fd, .limit = limit };
	w->failed = write_full(fd, STREAM_MAGIC, STREAM_MAGIC_SIZE);
	if (!w->failed)
		w->bytes = STREAM_MAGIC_SIZE;
	return w->failed;
}

static int writer_write_payload(struct stream_writer *w, enum chunk_type type, unsigned flags,
				const void *payload, size_t len)
{
	struct iovec iov[3] = { [1] = { .iov_base = (void *)(uintptr_t)payload, .iov_len = len } };

	return writer_write_chunk(w, type, flags, 0, iov, 1);
}

int stream_write(struct stream_writer *w, enum chunk_type type, const void *payload, size_t len)
{
	return writer_write_payload(w, type, 0, payload, len);
}

static int writer_write_pieces(struct stream_writer *w, enum chunk_type type, uint32_t cpu,
			       const struct iovec *pieces, int count)
{
	struct iovec iov[STREAM_IOV_MAX + 2];

	if (count < 0 || count > STREAM_IOV_MAX)
		return -E2BIG;
	if (count > 0)
		memcpy(&iov[1], pieces, (size_t)count * sizeof(*pieces));
	return writer_write_chunk(w, type, 0, cpu, iov, count);
}

int stream_write_pieces(struct stream_writer *w, enum chunk_type type, const struct iovec *pieces,
			int count)
{
	return writer_write_pieces(w, type, 0, pieces, count);
}

int stream_write_samples(struct stream_writer *w, uint32_t cpu, const struct iovec *pieces,
			 int count)
{
	return writer_write_pieces(w, CHUNK_SAMPLES, cpu, pieces, count);
}

int stream_write_packed(struct stream_writer *w, enum chunk_type type, const void *payload,
			size_t len)
{
	_cleanup_buf_ struct buf packed = BUF_INIT;
	int r;

	if (w->failed)
		return w->failed;
	if (len > CHUNK_EXPANDED_MAX)
		return -E2BIG;
	r = stream_pack(payload, len, &packed);
	if (r < 0)
		return r;
	return r ? writer_write_payload(w, type, CHUNK_ZSTD, packed.data, packed.len)
		 : writer_write_payload(w, type, 0, payload, len);
}

int stream_write_message(struct stream_writer *w, enum chunk_type type,
			 const ProtobufCMessage *message)
{
	_cleanup_free_ uint8_t *packed = NULL;
	size_t len = protobuf_c_message_get_packed_size(message);

	packed = malloc(MAX(len, (size_t)1));
	if (!packed)
		return -ENOMEM;
	protobuf_c_message_pack(message, packed);
	return writer_write_payload(w, type, 0, packed, len);
}

int stream_write_subbufs(struct stream_writer *w, uint32_t cpu, enum subbufs_buffer buffer,
			 uint32_t skip, const struct iovec *subbufs, int count)
{
	struct subbufs_header h = { .buffer = htole32(buffer), .skip = htole32(skip) };
	struct iovec iov[STREAM_IOV_MAX + 3];

	if (count < 0 || count > STREAM_IOV_MAX)
		return -E2BIG;
	iov[1] = (struct iovec){ .iov_base = &h, .iov_len = sizeof(h) };
	if (count > 0)
		memcpy(&iov[2], subbufs, (size_t)count * sizeof(*subbufs));
	return writer_write_chunk(w, CHUNK_SUBBUFS, 0, cpu, iov, count + 1);
}

int stream_write_elsewhere(struct stream_writer *w, uint32_t cpu, enum subbufs_buffer buffer,
			   uint64_t offset, uint32_t length)
{
	struct subbufs_elsewhere place = {
		.header.buffer = htole32(buffer),
		.offset = htole64(offset),
		.length = htole32(length),
	};
	struct iovec iov[3] = { [1] = { .iov_base = &place, .iov_len = sizeof(place) } };

	return writer_write_chunk(w, CHUNK_SUBBUFS, CHUNK_ELSEWHERE, cpu, iov, 1);
}
