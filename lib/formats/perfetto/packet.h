/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files that build packets with protobuf-c: head.c and packets.c. */
#pragma once

#include "formats/perfetto/packets.h"
#include "proto/perfetto/trace.pb-c.h"

#define PB(name) Perfetto__Protos__##name

enum { /* TracePacket's field numbers, where the wire is written without protobuf-c */
       PACKET_FTRACE_EVENTS = 1,
       PACKET_PROCESS_TREE = 2,
       PACKET_TIMESTAMP = 8,
       PACKET_SEQUENCE = 10,
       PACKET_TRACK_EVENT = 11,
       PACKET_INTERNED_DATA = 12,
       PACKET_SEQUENCE_FLAGS = 13,
       PACKET_TRACE_STATS = 35,
       PACKET_COMPRESSED = 50,
       PACKET_CLOCK = 58,
       PACKET_DEFAULTS = 59,
       PACKET_TRACK_DESCRIPTOR = 60,
       PACKET_PERF_SAMPLE = 66,
       PACKET_ZSTD = 133,
       /* Ours, ignored by readers: far above any number that upstream assigns. */
       PACKET_RECORDING = 74726,
};

#define TRACE_PACKET 1 /* field number of a packet in Trace */

enum { /* TracePacket.sequence_flags */
       SEQ_STATE_CLEARED = 1,
       SEQ_NEEDS_STATE = 2,
};

/* Appends the packet as field 1 of a Trace. 0 or -ENOMEM. */
int pf_put_packet(PB(TracePacket) * packet, struct buf *out);
