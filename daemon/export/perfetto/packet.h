/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files that build packets by protobuf-c share: head.c and packets.c. */
#pragma once

#include "export/perfetto/packets.h"
#include "proto/perfetto/trace.pb-c.h"

#define PB(name) Perfetto__Protos__##name

enum { /* TracePacket.sequence_flags */
       SEQ_STATE_CLEARED = 1,
       SEQ_NEEDS_STATE = 2,
};

#define PF_BUILTIN_BOOTTIME 6 /* BuiltinClock */

/* Appends the packet as field 1 of a Trace. 0 or -ENOMEM. */
int pf_put_packet(PB(TracePacket) * packet, struct buf *out);
