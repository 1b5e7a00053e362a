/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The packets of a Perfetto trace, one after the other: of a plain file or one through gzip, out
 * of the packets that hold others compressed. Memory: the largest packet's, as it is expanded.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "formats/perfetto_read/wire_read.h"
#include "marks/gunzip.h"

/* Upstream wants less than 512 KiB in a packet; bundles of ours are of that order. */
#define PF_PACKET_MAX (16U << 20)

/* What of a TracePacket is asked for here; all borrowed, len 0: it has none. */
struct pf_packet {
	uint64_t timestamp; /* 0: none */
	uint32_t sequence, sequence_flags;
	struct wire_field bundle, process_tree, trace_stats;
	struct wire_field track_event, track_descriptor, interned, defaults, perf_sample;
	struct wire_field recording; /* PACKET_RECORDING: ours */
	/* Other packets, compressed, by its number; what is behind it is not read. */
	struct wire_field packed;
};

struct pf_packets {
	struct gunzip in;
	struct buf piece;	  /* read ahead; from at on */
	size_t at;		  /* in piece */
	struct buf expanded;	  /* of a packet that holds others, */
	struct wire_reader inner; /* and what of it is still to come */
	bool ended;
	uint64_t bytes; /* of packets so far, as they were expanded */
	bool cut;	/* the file ends within a packet, or what it holds is damaged */
	void *zstd;	/* owned; a ZSTD_DCtx */
};

/* Reads fd from its start on. */
int pf_packets_init(struct pf_packets *p, int fd);
void pf_packets_deinit(struct pf_packets *p);
/*
 * 1, valid until the next call; 0: no more, cut tells whether all was there; -errno: the file can't
 * be read, -EOPNOTSUPP: this build has not what expands it.
 */
int pf_packets_next(struct pf_packets *p, struct pf_packet *ret, struct error *err);

/* As it stands in the file. false: it is damaged; *ret has what comes before that. */
bool pf_packet_read(struct wire_reader from, struct pf_packet *ret);

/* Whether these, the first bytes of a file, are a Perfetto trace's. */
bool pf_packets_begin(const void *data, size_t len);
