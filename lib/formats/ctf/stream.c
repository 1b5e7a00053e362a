/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds packets as metadata.c describes them. The header is filled in at the end. */
#include "base/io.h"
#include "formats/ctf/ctf.h"

#define MAGIC UINT32_C(0xc1fc1fc1)

void ctf_put_text(struct buf *b, const char *text, size_t len)
{
	static const char replacement[] = "\xef\xbf\xbd";

	while (len) {
		size_t n = strnlen(text, len);

		buf_append(b, text, n);
		if (n == len)
			break;
		buf_append(b, replacement, sizeof(replacement) - 1);
		text += n + 1;
		len -= n + 1;
	}
	buf_putc(b, '\0');
}

static void packet_put_head(const struct ctf *c, const struct ctf_stream *s, struct buf *b,
			    uint64_t from, uint64_t to, size_t size)
{
	const Traced__Capture__Header *h = c->info->header;

	ctf_put_u32(c, b, MAGIC);
	if (ctf_has_uuid(c))
		buf_append(b, h->uuid.data, h->uuid.len);
	ctf_put_u32(c, b, s->stream_class);
	ctf_put_u64(c, b, from);
	ctf_put_u64(c, b, to);
	ctf_put_u64(c, b, (uint64_t)size * 8);
	ctf_put_u64(c, b, (uint64_t)size * 8);
	ctf_put_u64(c, b, s->packets);
	ctf_put_u64(c, b, s->discarded);
	if (s->stream_class == CTF_KERNEL)
		ctf_put_u32(c, b, s->cpu);
}

static size_t packet_head_size(const struct ctf *c, const struct ctf_stream *s)
{
	return 2 * sizeof(uint32_t) + (ctf_has_uuid(c) ? CTF_UUID_LEN : 0) + 6 * sizeof(uint64_t) +
	       (s->stream_class == CTF_KERNEL ? sizeof(uint32_t) : 0);
}

static int packet_begin(const struct ctf *c, struct ctf_stream *s)
{
	size_t head = packet_head_size(c, s);
	char *p = buf_reserve(&s->packet, c->packet_max + head);

	if (!p)
		return -ENOMEM;
	memset(p, 0, head);
	s->packet.len = head;
	s->begun = true;
	return 0;
}

int ctf_stream_flush(const struct ctf *c, struct ctf_stream *s)
{
	struct buf *b = &s->packet;
	size_t size = b->len;
	int r;

	if (buf_error(b))
		return -ENOMEM;
	if (!size)
		return 0;
	/* Reserve the header; packet_put_head() overwrites it with the same size. */
	b->len = 0;
	packet_put_head(c, s, b, s->first_ts, s->last_ts, size);
	b->len = size;
	s->packets++;
	r = output_file(c->out, s->name);
	if (r == 0)
		r = output_take(c->out, b);
	/* Free what one huge event took, once for each CPU. */
	if (b->cap > (size_t)c->packet_max * 3)
		buf_deinit(b);
	return r;
}

static void stream_go_on(const struct ctf *c, struct ctf_stream *s, uint64_t ts)
{
	s->last_ts = MAX(s->last_ts, MIN(ts, c->max_ts));
}

_hot_ int ctf_stream_event(struct ctf *c, struct ctf_stream *s, uint64_t ts, uint32_t event_class)
{
	struct {
		uint64_t ts;
		uint16_t id;
	} __attribute__((packed)) head;

	stream_go_on(c, s, ts);
	c->times_cut += ts > c->max_ts;
	if (unlikely(!s->packet.len)) {
		int r = packet_begin(c, s);

		if (r < 0)
			return r;
		s->first_ts = s->last_ts;
	}
	head.ts = ctf_u64(c, s->last_ts);
	head.id = ctf_u16(c, (uint16_t)event_class);
	buf_append(&s->packet, &head, sizeof(head));
	return 0;
}

int ctf_stream_settle(const struct ctf *c, struct ctf_stream *s)
{
	return likely(s->packet.len < c->packet_max) ? 0 : ctf_stream_flush(c, s);
}

int ctf_stream_begin_gap(const struct ctf *c, struct ctf_stream *s, uint64_t from, uint64_t count)
{
	int r = 0;

	/*
	 * Readers take the difference of the counters of two packets: the first packet shows no
	 * loss.
	 */
	if (!s->begun) {
		r = packet_begin(c, s);
		stream_go_on(c, s, from);
		s->first_ts = s->last_ts;
	}
	if (r == 0)
		r = ctf_stream_flush(c, s);
	s->discarded += count;
	return r;
}

int ctf_stream_end_gap(const struct ctf *c, struct ctf_stream *s, uint64_t to)
{
	stream_go_on(c, s, to);
	return ctf_stream_flush(c, s);
}

void ctf_stream_deinit(struct ctf_stream *s)
{
	buf_deinit(&s->packet);
}
