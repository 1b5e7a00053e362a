/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/origin.h"

#include "formats/perfetto/message.h"
#include "formats/perfetto/packet.h"
#include "proto/origin.pb-c.h"

/*
 * Written as single fields of a packet: Perfetto's messages, as protobuf-c knows them, have no such
 * fields.
 */
static int pf_origin_put(const Traced__Origin__Recording *message, struct buf *out)
{
	size_t packet = pf_open_wide(out, TRACE_PACKET),
	       content = pf_open_wide(out, PACKET_RECORDING);
	uint8_t *p =
		(uint8_t *)buf_reserve(out, protobuf_c_message_get_packed_size(&message->base));

	if (p)
		out->len += protobuf_c_message_pack(&message->base, p);
	pf_close_wide(out, content);
	pf_close_wide(out, packet);
	return buf_error(out);
}

int pf_put_origin(const struct trace_info *info, bool legacy_generic, bool raw_addresses,
		  struct buf *out)
{
	Traced__Origin__Recording message = TRACED__ORIGIN__RECORDING__INIT;
	Traced__Capture__Header header = *info->header;
	_cleanup_buf_ struct buf constants = BUF_INIT;
	int r = event_table_put_enums(info->events, &constants);

	if (r < 0)
		return r;
	/* The key would allow to recover hashed addresses. */
	header.pointer_key = (ProtobufCBinaryData){ 0 };
	/* A Perfetto trace keeps neither buffer names nor raw timestamps: clear both. */
	header.n_buffers = 0;
	header.time_mult = header.time_shift = 0;
	header.time_offset = 0;
	message.version = ORIGIN_VERSION;
	message.header = &header;
	message.constants.data = (uint8_t *)constants.data;
	message.constants.len = constants.len;
	message.legacy_generic = legacy_generic;
	message.raw_addresses = raw_addresses;
	return pf_origin_put(&message, out);
}

/* First and last readings suffice to convert other clocks; syncs are events anyway. */
static size_t origin_choose_clocks(const struct trace_info *info, Traced__Capture__Clocks **chosen)
{
	size_t n = 0;

	for (size_t i = 0; i < info->clock_count; i++)
		if (i == 0 || i + 1 == info->clock_count || *info->clocks[i]->sync_id)
			chosen[n++] = info->clocks[i];
	return n;
}

int pf_put_origin_end(const struct trace_info *info, const struct export_result *result, bool whole,
		      struct buf *out)
{
	Traced__Origin__Recording message = TRACED__ORIGIN__RECORDING__INIT;
	_cleanup_free_ Traced__Capture__Clocks **clocks =
		calloc(info->clock_count + 1, sizeof(*clocks));

	if (!clocks)
		return -ENOMEM;
	message.ended = true;
	message.incomplete = result->incomplete;
	message.stats = info->stats;
	message.n_stats = whole ? info->stats_count : 0;
	message.clocks = clocks;
	message.n_clocks = origin_choose_clocks(info, clocks);
	message.notes = info->notes;
	message.n_notes = info->note_count;
	message.end = info->end;
	return pf_origin_put(&message, out);
}
