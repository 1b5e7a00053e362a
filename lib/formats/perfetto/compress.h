/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compresses a run of whole packets into one TracePacket of compressed_packets (deflate) or
 * zstd_compressed_packets. Each is a complete frame, as readers require, so a truncated file is
 * still a valid prefix.
 */
#pragma once

#include "base/buf.h"
#include "export/export.h"

/* Bytes of packets per frame; upstream wants packets below 512 KiB. */
#define PF_COMPRESS_BYTES (256U << 10)

struct pf_compressor;

int pf_compressor_new(struct pf_compressor **ret, enum perfetto_compression how);
struct pf_compressor *pf_compressor_free(struct pf_compressor *c);
DEFINE_CLEANUP_FUNC(struct pf_compressor *, pf_compressor_free);

/* Appends one packet that contains `packets`, and empties that. An empty one adds nothing. */
int pf_compress(struct pf_compressor *c, struct buf *packets, struct buf *out);
