/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Traces of several machines in one. The first machine is the trace's own; each packet of another
 * one says so in machine_id. Readers convert its clocks by a RemoteClockSync. The times are of one
 * clock already, so that says an offset of 0.
 */
#include "formats/perfetto/join.h"
#include "formats/perfetto/packet.h"
#include "formats/perfetto/track_event.h"
#include "formats/perfetto/wire.h"

#define PACKET_MACHINE 98
#define PACKET_REMOTE_CLOCK 107
/* The exporter's packets are much shorter. */
#define PACKET_MAX (64U << 20)
/* uuids of the tracks with machines' names: "hos". */
#define HOST_TRACKS UINT64_C(0x686f730000000000)

/* The next packet's content. 1, 0 at the end, -EBADMSG or -errno. */
static int reader_next(struct part_reader *r, const char **ret, size_t *ret_len)
{
	uint64_t len = 0;
	size_t head = 1;
	const uint8_t *p;
	int n = part_reader_need(r, 1 + WIRE_VARINT_MAX);

	if (n < 0 || r->ahead.len == r->used)
		return n;
	p = (const uint8_t *)r->ahead.data + r->used;
	if (*p != (TRACE_PACKET << 3 | WIRE_BYTES))
		return -EBADMSG;
	for (unsigned shift = 0;; shift += 7, head++) {
		if (head == r->ahead.len - r->used || shift > 28)
			return -EBADMSG;
		len |= (uint64_t)(p[head] & 0x7f) << shift;
		if (!(p[head] & 0x80))
			break;
	}
	head++;
	if (len > PACKET_MAX)
		return -EBADMSG;
	n = part_reader_need(r, head + (size_t)len);
	if (n < 0 || r->ahead.len - r->used < head + len)
		return n ?: -EBADMSG;
	*ret = r->ahead.data + r->used + head;
	*ret_len = (size_t)len;
	r->used += head + (size_t)len;
	return 1;
}

/* machine 0: the trace's own. */
static int put_packet(const char *packet, size_t len, uint32_t machine, struct output *out)
{
	uint8_t id[WIRE_TAG_MAX + WIRE_VARINT_MAX], head[1 + WIRE_VARINT_MAX];
	size_t more = machine ? (size_t)(wire_uint(id, PACKET_MACHINE, machine) - id) : 0;
	uint8_t *end = wire_varint(wire_tag(head, TRACE_PACKET, WIRE_BYTES), len + more);

	buf_append(&out->buf, head, (size_t)(end - head));
	buf_append(&out->buf, packet, len);
	buf_append(&out->buf, id, more);
	return output_settle(out);
}

static uint8_t *put_clock(uint8_t *p, uint32_t field, uint64_t ts)
{
	uint8_t *clocks = wire_open(p, field), *clock = wire_open(clocks, 1);

	p = wire_uint(wire_uint(clock, 1, PF_BUILTIN_BOOTTIME), 2, ts);
	return wire_close(clocks, wire_close(clock, p));
}

/*
 * Two exchanges. Readers take the four readings for consecutive: with steps of 1 ns they compute
 * an offset of 0.
 */
static int put_remote_clock(uint64_t ts, uint32_t machine, struct output *out)
{
	uint8_t packet[256], *sync = wire_open(packet, PACKET_REMOTE_CLOCK), *p = sync;

	for (uint64_t i = 0; i < 4; i += 2) {
		uint8_t *round = wire_open(p, 1);

		p = put_clock(round, 2, ts + i);
		p = put_clock(p, 3, ts + i + 1);
		p = wire_close(round, p);
	}
	p = wire_close(sync, p);
	return put_packet((const char *)packet, (size_t)(p - packet), machine, out);
}

/* Fills the column `name` of the readers' table `machine`, since v58. */
static int put_machine_name(const struct export_part *part, struct buf *out)
{
	PB(SystemInfo) system = PERFETTO__PROTOS__SYSTEM_INFO__INIT;
	struct pf_packet packet = { .field = PACKET_SYSTEM_INFO, .message = &system.base };

	system.machine_name = (char *)part->label;
	return pf_put_packet(&packet, out);
}

/* A track with the machine's name, and an instant that says how its clock is tied. */
static int put_name(const struct export_part *part, uint32_t number, struct buf *out)
{
	PB(TrackDescriptor) track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	PB(TrackEvent) event = PERFETTO__PROTOS__TRACK_EVENT__INIT;
	struct pf_packet packet = { .sequence = PF_SEQUENCE_TRACKS };
	char name[64];
	int r;

	snprintf(name, sizeof(name), "host %s", part->label);
	track.has_uuid = true;
	track.uuid = HOST_TRACKS + number;
	track.name = name;
	packet.field = PACKET_TRACK_DESCRIPTOR;
	packet.message = &track.base;
	r = pf_put_packet(&packet, out);
	event.has_type = event.has_track_uuid = true;
	event.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_INSTANT;
	event.track_uuid = track.uuid;
	event.name = (char *)part->tie;
	packet.has_timestamp = true;
	packet.ts = part->first;
	packet.field = PACKET_TRACK_EVENT;
	packet.message = &event.base;
	return r < 0 ? r : pf_put_packet(&packet, out);
}

static int put_own(const struct export_part *part, uint32_t machine, struct output *out)
{
	_cleanup_buf_ struct buf packets = BUF_INIT;
	struct part_reader own = { .fd = -EBADF };
	const char *packet;
	size_t len;
	int r = put_machine_name(part, &packets) ?: put_name(part, machine, &packets);

	own.ahead = packets;
	while (r >= 0 && own.used < packets.len && (r = reader_next(&own, &packet, &len)) > 0)
		r = put_packet(packet, len, machine, out);
	return MIN(r, 0);
}

static int put_part(const struct export_part *part, uint32_t machine, struct output *out)
{
	struct part_reader reader = { .fd = part->fd };
	const char *packet;
	size_t len;
	int r = machine ? put_remote_clock(part->first, machine, out) : 0;

	while (r >= 0 && (r = reader_next(&reader, &packet, &len)) > 0)
		r = put_packet(packet, len, machine, out);
	buf_deinit(&reader.ahead);
	return r < 0 ? r : put_own(part, machine, out);
}

int perfetto_join(const struct export_part *parts, size_t count,
		  const struct export_result *result _unused_, struct output *out,
		  struct error *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < count; i++)
		r = put_part(&parts[i], (uint32_t)i, out);
	return r < 0 ? error_errno(err, r, "can't join the machines' parts") : 0;
}
