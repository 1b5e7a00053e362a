/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Internal to the sink for trace.dat, see trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5). sink.c
 * builds the file, head.c its texts, data.c copies the sub-buffers.
 *
 * Version 6 is written front to back, also to a pipe: all sizes and offsets are known in advance.
 * Version 7, with sections compressed by zstd, seeks back twice to fill in an offset.
 */
#pragma once

#include "export/sink.h"
#include "formats/dat/format.h"
#include "trace/index.h"

/* Sub-buffers of one CPU in one buffer of the recording. */
struct dat_cpu_data {
	const struct cpu_chunks *chunks; /* NULL: no data */
	uint64_t pages;
	uint64_t offset, size; /* range in the file */
};

/* A buffer of the file; name "": the top-level one. */
struct dat_ring {
	uint32_t number; /* number in struct subbufs_header */
	const char *name;
	struct dat_cpu_data *cpus; /* owned; dat_file.cpus entries */
	uint64_t table;		   /* file offset of its CPU table */
};

struct dat_file {
	struct sink sink;
	const struct trace_info *info;
	struct output *out;
	bool packed; /* version 7 with zstd */
	bool big_endian;
	uint32_t page_size;
	uint32_t cpus;
	struct dat_ring *rings; /* owned */
	size_t ring_count;
	struct buf symbols, printk; /* texts */
	struct buf block, packed_block;
	void *zstd; /* owned; a ZSTD_CCtx */
};

static inline uint64_t dat_position(const struct dat_file *f)
{
	return f->out->bytes + f->out->buf.len;
}

/* Append integers in the recording's byte order. */
void dat_put_u16(const struct dat_file *f, struct buf *b, uint16_t v);
void dat_put_u32(const struct dat_file *f, struct buf *b, uint32_t v);
void dat_put_u64(const struct dat_file *f, struct buf *b, uint64_t v);

/* head.c: the parts that describe the events. -EFBIG: too long for its field. */
int dat_put_part(struct dat_file *f, enum dat_part part, struct buf *b);
/* Loads kernel symbols and printk formats from the stream. */
int dat_load_texts(struct dat_file *f, const struct stream_reader *reader, struct error *err);
/* Writes the options except buffers and section offsets. */
void dat_put_options(const struct dat_file *f, struct buf *b);
void dat_put_option(const struct dat_file *f, struct buf *b, unsigned id, const void *value,
		    size_t len);
void dat_put_clock(const struct dat_file *f, struct buf *b);

/* data.c: finds the sub-buffers. */
int dat_find_data(struct dat_file *f, const struct stream_index *index, struct error *err);
/* Writes one CPU's data at the output's position. */
int dat_write_cpu(struct dat_file *f, const struct dat_cpu_data *cpu,
		  const struct stream_reader *reader, struct error *err);
/* Appends `from`, compressed by zstd, to `to`. */
int dat_pack(struct dat_file *f, const void *from, size_t len, struct buf *to, struct error *err);
