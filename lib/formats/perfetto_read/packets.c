/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/packets.h"

#include <errno.h>
#include <unistd.h>
#if HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/io.h"
#include "formats/perfetto/packet.h"

/*
 * Packets of events are at most some twenty times as large as what zstd or deflate make of them:
 * more than this is no trace, and would take hours.
 */
#define EXPANSION_MAX 256
#define EXPANSION_FREE (UINT64_C(64) << 20)

/* Read ahead at once. */
#define PIECE (256U << 10)
/* A packet's tag and length. */
#define HEAD_MAX (1 + WIRE_VARINT_MAX)
/* TracePacket's field numbers; upstream's are below 2000. */
#define FIELD_MAX PACKET_RECORDING
#define WINDOW_LOG_MAX 24 /* of a zstd frame: what expands to PF_PACKET_MAX needs no more */

bool pf_packets_begin(const void *data, size_t len)
{
	const uint8_t *p = data;
	struct wire_reader r;
	uint64_t size, tag;

	if (len < 3 || p[0] != (TRACE_PACKET << 3 | WIRE_BYTES))
		return false;
	r = wire_reader_of(p + 1, len - 1);
	/* Text may begin with a newline, too: what follows has to be a field of a packet. */
	return wire_read_varint(&r, &size) && size && size <= PF_PACKET_MAX &&
	       wire_read_varint(&r, &tag) && tag >> 3 && tag >> 3 <= FIELD_MAX &&
	       ((tag & 7) <= WIRE_BYTES || (tag & 7) == WIRE_FIXED32);
}

int pf_packets_init(struct pf_packets *p, int fd)
{
	*p = (struct pf_packets){ 0 };
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return gunzip_init(&p->in, fd);
}

void pf_packets_deinit(struct pf_packets *p)
{
	gunzip_deinit(&p->in);
	buf_deinit(&p->piece);
	buf_deinit(&p->expanded);
#if HAVE_ZSTD
	ZSTD_freeDCtx(p->zstd);
#endif
}

/* Sees to it that len bytes are there from p->at on. 1; 0: the file ends before; -errno. */
static int want(struct pf_packets *p, size_t len)
{
	size_t left = p->piece.len - p->at;
	char *room;
	ssize_t n;

	if (left >= len)
		return 1;
	if (p->at) {
		memmove(p->piece.data, p->piece.data + p->at, left);
		p->piece.len = left;
		p->at = 0;
	}
	while (p->piece.len < len) {
		/* Not all that a length claims: as much as comes. */
		room = buf_reserve(&p->piece, PIECE);
		if (!room)
			return -ENOMEM;
		n = gunzip_read(&p->in, room, PIECE);
		if (n <= 0)
			return (int)n;
		p->piece.len += (size_t)n;
	}
	return 1;
}

static int end(struct pf_packets *p, bool whole)
{
	p->ended = true;
	p->cut |= !whole || p->in.cut;
	return 0;
}

/* The next packet of the file itself. 1, 0 or -errno. */
static int next_outer(struct pf_packets *p, struct wire_reader *ret)
{
	struct wire_reader head;
	uint64_t tag, len;
	int r;

	if (p->ended)
		return 0;
	r = want(p, HEAD_MAX);
	if (r < 0)
		return r;
	head = wire_reader_of(p->piece.data + p->at, p->piece.len - p->at);
	if (head.at == head.end)
		return end(p, true);
	if (!wire_read_varint(&head, &tag) || tag != (TRACE_PACKET << 3 | WIRE_BYTES) ||
	    !wire_read_varint(&head, &len) || len > PF_PACKET_MAX)
		return end(p, false);
	p->at = (size_t)(head.at - (const uint8_t *)p->piece.data);
	r = want(p, (size_t)len);
	if (r <= 0)
		return r < 0 ? r : end(p, false);
	*ret = wire_reader_of(p->piece.data + p->at, (size_t)len);
	p->at += (size_t)len;
	return 1;
}

static int inflate_packets(struct pf_packets *p, const struct wire_field *f)
{
	z_stream z = { .next_in = (uint8_t *)(uintptr_t)f->data, .avail_in = (uInt)f->len };
	int state = Z_OK;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	while (state == Z_OK && p->expanded.len <= PF_PACKET_MAX) {
		char *room = buf_reserve(&p->expanded, PIECE);

		if (!room)
			break;
		z.next_out = (uint8_t *)room;
		z.avail_out = PIECE;
		state = inflate(&z, Z_NO_FLUSH);
		p->expanded.len += PIECE - z.avail_out;
		if (!z.avail_in && z.avail_out && state == Z_OK)
			break;
	}
	inflateEnd(&z);
	return p->expanded.failed ? -ENOMEM : state == Z_STREAM_END ? 0 : -EBADMSG;
}

#if HAVE_ZSTD
static int unzstd_packets(struct pf_packets *p, const struct wire_field *f)
{
	ZSTD_outBuffer to = { 0 };
	ZSTD_inBuffer from = { .src = f->data, .size = f->len };
	size_t r = 1;

	p->zstd = p->zstd ?: ZSTD_createDCtx();
	if (!p->zstd)
		return -ENOMEM;
	ZSTD_DCtx_reset(p->zstd, ZSTD_reset_session_only);
	ZSTD_DCtx_setParameter(p->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	while (r && p->expanded.len <= PF_PACKET_MAX) {
		size_t before = from.pos;

		to = (ZSTD_outBuffer){ .dst = buf_reserve(&p->expanded, PIECE), .size = PIECE };
		if (!to.dst)
			return -ENOMEM;
		r = ZSTD_decompressStream(p->zstd, &to, &from);
		if (ZSTD_isError(r) || (from.pos == before && !to.pos))
			return -EBADMSG;
		p->expanded.len += to.pos;
	}
	return r ? -EBADMSG : 0;
}
#else
static int unzstd_packets(struct pf_packets *p _unused_, const struct wire_field *f _unused_)
{
	return -EOPNOTSUPP;
}
#endif

static void take(struct pf_packet *ret, const struct wire_field *f)
{
	switch (f->number) {
	case PACKET_TIMESTAMP:
		ret->timestamp = f->value;
		break;
	case PACKET_SEQUENCE:
		ret->sequence = (uint32_t)f->value;
		break;
	case PACKET_SEQUENCE_FLAGS:
		ret->sequence_flags = (uint32_t)f->value;
		break;
	}
}

/* The parts of bytes that are asked for. */
static struct wire_field *part_of(struct pf_packet *ret, uint32_t number)
{
	switch (number) {
	case PACKET_FTRACE_EVENTS:
		return &ret->bundle;
	case PACKET_PROCESS_TREE:
		return &ret->process_tree;
	case PACKET_TRACE_STATS:
		return &ret->trace_stats;
	case PACKET_TRACK_EVENT:
		return &ret->track_event;
	case PACKET_INTERNED_DATA:
		return &ret->interned;
	case PACKET_DEFAULTS:
		return &ret->defaults;
	case PACKET_TRACK_DESCRIPTOR:
		return &ret->track_descriptor;
	case PACKET_PERF_SAMPLE:
		return &ret->perf_sample;
	case PACKET_RECORDING:
		return &ret->recording;
	case PACKET_COMPRESSED:
	case PACKET_ZSTD:
		return &ret->packed;
	default:
		return NULL;
	}
}

bool pf_packet_read(struct wire_reader from, struct pf_packet *ret)
{
	struct wire_field f, *part;

	*ret = (struct pf_packet){ 0 };
	while (!ret->packed.number && wire_read(&from, &f)) {
		part = f.type == WIRE_BYTES ? part_of(ret, f.number) : NULL;
		if (part)
			*part = f;
		else if (f.type != WIRE_BYTES)
			take(ret, &f);
	}
	return !from.bad;
}

/* 1; 0: what it holds was expanded into p->inner; -EBADMSG, -ENOMEM, -EOPNOTSUPP. */
static int read_packet(struct pf_packets *p, struct wire_reader from, bool outer,
		       struct pf_packet *ret)
{
	const struct wire_field *packed = &ret->packed;
	int r;

	if (!pf_packet_read(from, ret))
		return -EBADMSG;
	if (!packed->number)
		return 1;
	/* Not once more. */
	if (!outer)
		return -EBADMSG;
	buf_clear(&p->expanded);
	r = packed->number == PACKET_ZSTD ? unzstd_packets(p, packed) : inflate_packets(p, packed);
	p->inner = wire_reader_of(p->expanded.data, r < 0 ? 0 : p->expanded.len);
	return r;
}

/* 1: of those that were expanded; 0: no more. */
static int next_inner(struct pf_packets *p, struct wire_reader *ret)
{
	struct wire_field f;

	while (wire_read(&p->inner, &f)) {
		if (f.number != TRACE_PACKET || f.type != WIRE_BYTES)
			continue;
		*ret = wire_reader_in(&f);
		return 1;
	}
	p->cut |= p->inner.bad;
	p->inner = (struct wire_reader){ 0 };
	return 0;
}

static bool expands_too_much(const struct pf_packets *p)
{
	off_t read = lseek(p->in.fd, 0, SEEK_CUR);

	return p->bytes > EXPANSION_FREE &&
	       p->bytes / EXPANSION_MAX > (uint64_t)MAX(read, (off_t)0);
}

int pf_packets_next(struct pf_packets *p, struct pf_packet *ret, struct error *err)
{
	for (;;) {
		struct wire_reader packet;
		bool outer = !next_inner(p, &packet);
		int r = outer ? next_outer(p, &packet) : 1;

		if (r > 0) {
			p->bytes += (uint64_t)(packet.end - packet.at) + 2;
			if (expands_too_much(p))
				return end(p, false);
			r = read_packet(p, packet, outer, ret);
			/* Others may be whole. */
			if (r == -EBADMSG) {
				p->cut = true;
				continue;
			}
			if (r == 0)
				continue;
		}
		/* Of a file through gzip. */
		if (r == -EBADMSG)
			return end(p, false);
		if (r == -EOPNOTSUPP)
			return error_set(err, r,
					 "it is compressed by zstd, which this build has not");
		return r < 0 ? error_errno(err, r, "can't read it") : r;
	}
}
