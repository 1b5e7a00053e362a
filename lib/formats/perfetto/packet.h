/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* TracePacket: its field numbers, and packets that protobuf-c builds. */
#pragma once

#include "formats/perfetto/packets.h"
#include "proto/perfetto/packets.pb-c.h"

#define PB(name) Perfetto__Protos__##name

enum { /* TracePacket's field numbers */
       PACKET_FTRACE_EVENTS = 1,
       PACKET_PROCESS_TREE = 2,
       PACKET_CLOCK_SNAPSHOT = 6,
       PACKET_SYS_STATS = 7,
       PACKET_TIMESTAMP = 8,
       PACKET_PROCESS_STATS = 9,
       PACKET_SEQUENCE = 10,
       PACKET_TRACK_EVENT = 11,
       PACKET_INTERNED_DATA = 12,
       PACKET_SEQUENCE_FLAGS = 13,
       PACKET_TRACE_CONFIG = 33,
       PACKET_FTRACE_STATS = 34,
       PACKET_TRACE_STATS = 35,
       PACKET_SYSTEM_INFO = 45,
       PACKET_COMPRESSED = 50,
       PACKET_CLOCK = 58,
       PACKET_DEFAULTS = 59,
       PACKET_TRACK_DESCRIPTOR = 60,
       PACKET_PERF_SAMPLE = 66,
       PACKET_CPU_INFO = 67,
       PACKET_SERVICE_EVENT = 69,
       PACKET_FIRST_ON_SEQUENCE = 87,
       PACKET_TRACE_UUID = 89,
       PACKET_ZSTD = 133,
       /* Ours, ignored by readers: far above any number that upstream assigns. */
       PACKET_RECORDING = 74726,
};

#define TRACE_PACKET 1 /* field number of a packet in Trace */

enum { /* TracePacket.sequence_flags */
       SEQ_STATE_CLEARED = 1,
       SEQ_NEEDS_STATE = 2,
};

struct pf_packet {
	bool has_timestamp;
	uint32_t sequence; /* PF_SEQUENCE or another; 0: none */
	uint64_t ts;
	uint32_t clock; /* of ts; 0: BOOTTIME */
	uint32_t field; /* PACKET_ */
	const ProtobufCMessage *message;
};

/* Appends the packet as field 1 of a Trace. 0 or -ENOMEM. */
int pf_put_packet(const struct pf_packet *packet, struct buf *out);
