/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stream/reader.h"

#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "stream/chunk.h"
#include "stream/pack.h"

static uint64_t chunk_payload_offset(const struct chunk *chunk)
{
	return chunk->offset + sizeof(struct chunk_header);
}

bool stream_begins(const void *data, size_t len)
{
	return len >= STREAM_MAGIC_SIZE && memcmp(data, STREAM_MAGIC, STREAM_MAGIC_SIZE) == 0;
}

int stream_reader_init(struct stream_reader *r, int fd, struct error *err)
{
	char magic[STREAM_MAGIC_SIZE];
	struct stat st;
	ssize_t n;

	*r = (struct stream_reader){ .fd = fd };
	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "can't read the capture stream");
	if (!S_ISREG(st.st_mode)) {
		error_set(err, -ESPIPE, "a capture stream must be a regular file");
		return error_hint(err, "save it to a file first");
	}
	n = pread_full(fd, magic, sizeof(magic), 0);
	if (n < 0)
		return error_errno(err, (int)n, "can't read the capture stream");
	if (!stream_begins(magic, (size_t)n)) {
		error_set(err, -EBADMSG, "not a capture stream of traced");
		error_hint(err, "give a file that `tracectl record -o NAME.traced` wrote");
		return -EBADMSG;
	}
	r->offset = STREAM_MAGIC_SIZE;
	r->size = (uint64_t)st.st_size;
	return 0;
}

int stream_reader_refresh(struct stream_reader *r, struct error *err)
{
	struct stat st;

	if (fstat(r->fd, &st) < 0)
		return error_errno(err, -errno, "can't read the capture stream");
	r->size = MAX(r->size, (uint64_t)st.st_size);
	return 0;
}

static int reader_cut(const struct stream_reader *r, struct error *err)
{
	return error_set(err, -ENODATA,
			 "the stream was cut: its last whole chunk ends at byte %llu of %llu",
			 (unsigned long long)r->offset, (unsigned long long)r->size);
}

/* Reads a chunk's header and what follows, up to len bytes together. Returns the bytes read. */
static ssize_t reader_read_at(const struct stream_reader *r, uint64_t offset, void *to, size_t len,
			      struct error *err)
{
	ssize_t n = pread_full(r->fd, to, len, (off_t)offset);

	if (n < 0)
		return error_errno(err, (int)n, "can't read the capture stream");
	/* The file was truncated after it was opened. */
	if (n < (ssize_t)sizeof(struct chunk_header))
		return reader_cut(r, err);
	return n;
}

static int reader_read_header(const struct stream_reader *r, uint64_t offset,
			      struct chunk_header *ret, struct error *err)
{
	ssize_t n = reader_read_at(r, offset, ret, sizeof(*ret), err);

	return n < 0 ? (int)n : 0;
}

/*
 * Reads the header at the reader's offset and a little more: callers need a SUBBUFS chunk's head
 * next.
 */
static int reader_read_ahead(struct stream_reader *r, struct chunk_header *ret, struct error *err)
{
	struct {
		struct chunk_header header;
		char payload[sizeof(r->ahead)];
	} is;
	ssize_t n = reader_read_at(r, r->offset, &is, (size_t)MIN(r->size - r->offset, sizeof(is)),
				   err);

	if (n < 0)
		return (int)n;
	*ret = is.header;
	r->ahead_of = r->offset;
	r->ahead_len = (size_t)n - sizeof(is.header);
	memcpy(r->ahead, is.payload, r->ahead_len);
	return 0;
}

/*
 * In a followed stream whole chunks come after a freed range. Zeros up to the end mean that the
 * stream was cut. Returns 1 if the offset was moved past a hole.
 */
static int reader_pass_hole(struct stream_reader *r)
{
	uint64_t at = r->offset;
	off_t data = lseek(r->fd, (off_t)at, SEEK_DATA);
	uint64_t words[512];

	if (data < 0)
		return 0;
	at = MAX(at, (uint64_t)data / CHUNK_ALIGN * CHUNK_ALIGN);
	while (at < r->size) {
		ssize_t n = pread_full(r->fd, words, sizeof(words), (off_t)at);
		size_t i = 0, count = n > 0 ? (size_t)n / sizeof(words[0]) : 0;

		while (i < count && !words[i])
			i++;
		at += i * sizeof(words[0]);
		if (i < count || !count)
			break;
	}
	if (at <= r->offset || at + sizeof(struct chunk_header) > r->size)
		return 0;
	r->hole += at - r->offset;
	r->offset = at;
	return 1;
}

/* Sub-buffers in another file have no checksum. */
static bool chunk_is_elsewhere(const struct stream_reader *r, const struct chunk_header *h)
{
	return r->pages_fd && le16toh(h->type) == CHUNK_SUBBUFS &&
	       le16toh(h->flags) & CHUNK_ELSEWHERE;
}

/* 1: the chunk's sub-buffers are in another file; 0: they are in the stream. */
static int reader_find_elsewhere(const struct stream_reader *r, const struct chunk *chunk,
				 struct subbufs_elsewhere *ret, struct error *err)
{
	struct {
		struct chunk_header header;
		struct subbufs_elsewhere place;
	} is;
	ssize_t n;

	if (!r->pages_fd || chunk->type != CHUNK_SUBBUFS)
		return 0;
	n = pread_full(r->fd, &is, sizeof(is), (off_t)chunk->offset);
	if (n < 0)
		return error_errno(err, (int)n, "can't read the capture stream");
	if (n < (ssize_t)sizeof(is.header) || !chunk_is_elsewhere(r, &is.header))
		return 0;
	if (n < (ssize_t)sizeof(is) ||
	    le32toh(is.place.length) > CHUNK_PAYLOAD_MAX - sizeof(is.place.header))
		return reader_cut(r, err);
	*ret = is.place;
	ret->offset = le64toh(is.place.offset);
	ret->length = le32toh(is.place.length);
	return 1;
}

/* Describes a chunk of sub-buffers in another file as if the stream had them. */
static int reader_take_elsewhere(struct stream_reader *r, struct chunk *chunk, struct error *err)
{
	struct subbufs_elsewhere place;
	int rc = reader_find_elsewhere(r, chunk, &place, err);

	if (rc <= 0)
		return rc;
	chunk->flags = 0;
	chunk->length = sizeof(place.header) + place.length;
	r->elsewhere += place.length;
	return 0;
}

int stream_reader_next(struct stream_reader *r, struct chunk *ret, struct error *err)
{
	static const struct chunk_header nothing;
	struct chunk_header h;
	uint64_t padded;
	int rc;

	if (r->offset >= r->size)
		return 0;
	if (r->size - r->offset < sizeof(h))
		return reader_cut(r, err);
	rc = reader_read_ahead(r, &h, err);
	if (rc < 0)
		return rc;
	/* After a power loss a file system may show zeros in place of data. */
	if (memcmp(&h, &nothing, sizeof(h)) == 0) {
		if (!reader_pass_hole(r))
			return reader_cut(r, err);
		rc = reader_read_ahead(r, &h, err);
		if (rc < 0)
			return rc;
	}
	if (le32toh(h.magic) != CHUNK_MAGIC || le32toh(h.length) > CHUNK_PAYLOAD_MAX)
		return error_set(err, -EBADMSG, "the stream is damaged at byte %llu",
				 (unsigned long long)r->offset);
	padded = ((uint64_t)le32toh(h.length) + CHUNK_ALIGN - 1) / CHUNK_ALIGN * CHUNK_ALIGN;
	if (r->size - r->offset - sizeof(h) < padded)
		return reader_cut(r, err);

	*ret = (struct chunk){
		.type = le16toh(h.type),
		.flags = le16toh(h.flags),
		.cpu = le32toh(h.cpu),
		.offset = r->offset,
		.length = le32toh(h.length),
	};
	rc = reader_take_elsewhere(r, ret, err);
	if (rc < 0)
		return rc;
	r->offset += sizeof(h) + padded;
	return 1;
}

static int chunk_damaged(const struct chunk *chunk, const char *what, struct error *err)
{
	return error_set(err, -EBADMSG, "the chunk at byte %llu is damaged: %s",
			 (unsigned long long)chunk->offset, what);
}

/* Reads from another file, as if the stream had the payload: a header, then sub-buffers. */
static ssize_t reader_read_elsewhere(const struct stream_reader *r,
				     const struct subbufs_elsewhere *place, uint64_t from, char *to,
				     size_t len)
{
	size_t head = 0;
	ssize_t n;

	if (from < sizeof(place->header)) {
		head = MIN(sizeof(place->header) - (size_t)from, len);
		memcpy(to, (const char *)&place->header + from, head);
	}
	n = pread_full(r->pages_fd, to + head, len - head,
		       (off_t)(place->offset + from + head - sizeof(place->header)));
	return n < 0 ? n : n + (ssize_t)head;
}

/* Fuzzers cannot find checksums: their builds accept any, to reach the parsers. */
static bool chunk_hash_is(const struct chunk_header *h, uint64_t hash)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	(void)h;
	(void)hash;
	return true;
#else
	return le64toh(h->hash) == hash;
#endif
}

static int reader_read_stored(const struct stream_reader *r, const struct chunk *chunk,
			      uint64_t from, size_t len, struct buf *out, struct error *err)
{
	struct subbufs_elsewhere place;
	ssize_t n;
	int rc;
	char *p;

	/* Free first: realloc would copy stale bytes. */
	if (out->cap < len)
		buf_deinit(out);
	buf_clear(out);
	p = buf_reserve(out, len);
	if (!p)
		return error_errno(err, -ENOMEM, "can't load a chunk of %zu bytes", len);
	rc = reader_find_elsewhere(r, chunk, &place, err);
	if (rc < 0)
		return rc;
	n = rc ? reader_read_elsewhere(r, &place, from, p, len)
	       : pread_full(r->fd, p, len, (off_t)(chunk_payload_offset(chunk) + from));
	if (n < 0)
		return error_errno(err, (int)n, "can't read the capture stream");
	if ((size_t)n < len && rc)
		return error_set(err, -EBADMSG, "the file ends within the sub-buffers at byte %llu",
				 (unsigned long long)place.offset);
	if ((size_t)n < len)
		return chunk_damaged(chunk, "the file ends within it", err);
	out->len = len;
	return 0;
}

static int chunk_too_long(const struct chunk *chunk, struct error *err)
{
	return error_set(err, -EFBIG, "the chunk at byte %llu is too long for its type",
			 (unsigned long long)chunk->offset);
}

static int chunk_expand(const struct chunk *chunk, size_t max, struct buf *payload,
			struct error *err)
{
	_cleanup_buf_ struct buf plain = BUF_INIT;
	const char *why;
	int r = stream_expand(payload->data, payload->len, max, &plain, &why);

	switch (r) {
	case 0:
		buf_deinit(payload);
		*payload = plain;
		plain = BUF_INIT;
		return 0;
	case -EBADMSG:
		return chunk_damaged(chunk, why, err);
	case -EFBIG:
		return chunk_too_long(chunk, err);
	case -EOPNOTSUPP:
		error_set(err, r, "the chunk at byte %llu is compressed with zstd",
			  (unsigned long long)chunk->offset);
		return error_hint(err,
				  "this program was built without zstd: use one built with it");
	default:
		return error_errno(err, r, "can't expand the chunk at byte %llu",
				   (unsigned long long)chunk->offset);
	}
}

int stream_reader_load(const struct stream_reader *r, const struct chunk *chunk, struct buf *out,
		       struct error *err)
{
	return stream_reader_load_max(r, chunk, CHUNK_EXPANDED_MAX, out, err);
}

int stream_reader_load_max(const struct stream_reader *r, const struct chunk *chunk, size_t max,
			   struct buf *out, struct error *err)
{
	struct chunk_header h;
	struct iovec payload;
	int rc;

	if (chunk->length > max)
		return chunk_too_long(chunk, err);
	rc = reader_read_header(r, chunk->offset, &h, err);
	if (rc < 0)
		return rc;
	rc = reader_read_stored(r, chunk, 0, chunk->length, out, err);
	if (rc < 0)
		return rc;
	if (chunk_is_elsewhere(r, &h))
		return 0;
	payload = (struct iovec){ .iov_base = out->data, .iov_len = out->len };
	if (!chunk_hash_is(&h, chunk_hash(&h, &payload, 1)))
		return chunk_damaged(chunk, "its checksum is wrong", err);
	if (chunk->flags & ~CHUNK_ZSTD)
		return chunk_damaged(chunk, "it has flags unknown to this version", err);
	return chunk->flags & CHUNK_ZSTD ? chunk_expand(chunk, max, out, err) : 0;
}

int stream_reader_verify(const struct stream_reader *r, const struct chunk *chunk,
			 struct buf *scratch, struct error *err)
{
	struct chunk_header h, zero_hash;
	XXH3_state_t state;
	int rc;

	rc = reader_read_header(r, chunk->offset, &h, err);
	if (rc < 0)
		return rc;
	if (chunk_is_elsewhere(r, &h))
		return 0;
	zero_hash = h;
	zero_hash.hash = 0;
	XXH3_64bits_reset(&state);
	hash_update(&state, &zero_hash, sizeof(zero_hash));
	for (uint32_t at = 0; at < chunk->length;) {
		uint32_t n = MIN(chunk->length - at, 64U << 10);

		rc = reader_read_stored(r, chunk, at, n, scratch, err);
		if (rc < 0)
			return rc;
		hash_update(&state, scratch->data, n);
		at += n;
	}
	if (!chunk_hash_is(&h, XXH3_64bits_digest(&state)))
		return chunk_damaged(chunk, "its checksum is wrong", err);
	return 0;
}

int stream_reader_load_part(const struct stream_reader *r, const struct chunk *chunk, uint32_t from,
			    uint32_t len, struct buf *out, struct error *err)
{
	if (chunk->flags)
		return error_set(err, -EINVAL, "a compressed chunk can't be read in parts");
	if (from > chunk->length || len > chunk->length - from)
		return chunk_damaged(chunk, "it is shorter than its content", err);
	if (!r->pages_fd && !from && chunk->offset == r->ahead_of && len <= r->ahead_len) {
		buf_clear(out);
		buf_append(out, r->ahead, len);
		return out->failed ? error_errno(err, -ENOMEM, "can't load the chunk at byte %llu",
						 (unsigned long long)chunk->offset)
				   : 0;
	}
	return reader_read_stored(r, chunk, from, len, out, err);
}

bool stream_reader_has_events(const struct stream_reader *r, const struct chunk *chunk)
{
	struct subbufs_header h;

	return chunk->type == CHUNK_SUBBUFS &&
	       !(pread_full(r->fd, &h, sizeof(h), (off_t)chunk_payload_offset(chunk)) ==
			 sizeof(h) &&
		 le32toh(h.buffer) == BUFFER_TASKS);
}
