/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Inside of the sink that writes a trace.dat, as trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5)
 * describe it: sink.c puts the file together, head.c makes its texts, data.c moves the sub-buffers.
 *
 * A version 6 is written from its first byte to its last one, also into a pipe: where everything
 * will lie is known by the sizes before. A version 7, whose sections are compressed by zstd, goes
 * back twice to fill in an offset.
 */
#pragma once

#include "export/sink.h"
#include "formats/dat/format.h"
#include "trace/index.h"

/* One CPU's sub-buffers in one of the recording's buffers. */
struct dat_cpu_data {
	const struct cpu_chunks *chunks; /* NULL: it has none */
	uint64_t pages;
	uint64_t offset, size; /* in the file */
};

/* A buffer of the file: with the name "" the top-level one. */
struct dat_ring {
	uint32_t number; /* as in struct subbufs_header */
	const char *name;
	struct dat_cpu_data *cpus; /* owned; dat_file.cpus of them */
	uint64_t table;		   /* offset */
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

/* Integers of the recorded machine's order, appended. */
void dat_put_u16(const struct dat_file *f, struct buf *b, uint16_t v);
void dat_put_u32(const struct dat_file *f, struct buf *b, uint32_t v);
void dat_put_u64(const struct dat_file *f, struct buf *b, uint64_t v);

/* head.c: the content of what describes the events. -EFBIG: it has no room for that. */
int dat_put_part(struct dat_file *f, enum dat_part part, struct buf *b);
/* Kernel symbols and printk formats are in the stream alone. */
int dat_load_texts(struct dat_file *f, const struct stream_reader *reader, struct error *err);
/* The options but for buffers and where sections lie. */
void dat_put_options(const struct dat_file *f, struct buf *b);
void dat_put_option(const struct dat_file *f, struct buf *b, unsigned id, const void *value,
		    size_t len);
void dat_put_clock(const struct dat_file *f, struct buf *b);

/* data.c: which sub-buffers there are. */
int dat_find_data(struct dat_file *f, const struct stream_index *index, struct error *err);
/* One CPU's, at the output's position. */
int dat_write_cpu(struct dat_file *f, const struct dat_cpu_data *cpu,
		  const struct stream_reader *reader, struct error *err);
/* zstd of from, appended to to. */
int dat_pack(struct dat_file *f, const void *from, size_t len, struct buf *to, struct error *err);
