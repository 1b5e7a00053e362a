/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Packets within a packet: a run of whole packets becomes one TracePacket of
 * compressed_packets (deflate) or zstd_compressed_packets. Each is a frame of its
 * own, as the reader wants it, so that a file that was cut is still a valid prefix.
 */
#pragma once

#include "base/buf.h"
#include "export/export.h"

/* Packets are gathered up to this many bytes; upstream wants less than 512 KiB in a packet. */
#define PF_COMPRESS_BYTES (256U << 10)

struct pf_compressor;

int pf_compressor_new(struct pf_compressor **ret, enum perfetto_compression how);
struct pf_compressor *pf_compressor_free(struct pf_compressor *c);
DEFINE_CLEANUP_FUNC(struct pf_compressor *, pf_compressor_free);

/* Appends one packet that holds all of packets, and empties that; nothing if it is empty. */
int pf_compress(struct pf_compressor *c, struct buf *packets, struct buf *out);
