/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads a trace.dat of version 6 or 7, see trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5). dat_open
 * locates the parts, dat_write makes the stream.
 *
 * Version 6 is one sequence with the options near the end. Version 7 has sections, found by offsets
 * in options; each may be compressed. Numbers are in the recording's byte order.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "formats/dat/format.h"
#include "stream/layout.h"
#include "stream/writer.h"

enum dat_packing { DAT_PLAIN, DAT_ZLIB, DAT_ZSTD };

/* Data of one CPU in a buffer: its range in the file. */
struct dat_cpu {
	uint32_t cpu;
	uint64_t offset, size;
};

struct dat_buffer {
	char name[256];
	char clock[32]; /* "": unknown */
	uint32_t page_size;
	bool packed;
	bool is_text; /* text of a latency tracer: no sub-buffers */
	bool chosen;
	struct dat_cpu *cpus; /* owned */
	size_t cpu_count;
};
#define DAT_BUFFERS_MAX 256

struct dat {
	int fd; /* borrowed */
	uint64_t size;
	unsigned version;
	bool big_endian;
	enum dat_packing packing;
	void *zstd; /* owned; a ZSTD_DCtx */
	uint32_t page_size;
	uint64_t parts[DAT_PARTS]; /* file offsets; 0: none */
	uint64_t options;	   /* offset of the first options */
	uint64_t tables;	   /* version 6: offset of the top-level buffer's CPU table */
	/* From the options. */
	uint32_t cpus;
	char uname[512], program[128];
	/*
	 * "": use each buffer's clock. Prefer this one: with instances, trace-cmd stores the
	 * top-level buffer's clock only here.
	 */
	char clock[32];
	bool has_clock;
	int64_t time_offset; /* ns */
	uint32_t time_mult, time_shift;
	struct dat_buffer *buffers; /* owned; at most DAT_BUFFERS_MAX */
	size_t buffer_count;
	struct buf notes; /* notes for the user, NUL after each */
	struct buf gaps;  /* the same, about missing data */
	/* Used by dat_write. */
	struct buf header_page;
	struct subbuf_layout layout;
	unsigned word_size;
};
#define _cleanup_dat_ _cleanup_(dat_deinit)

int dat_open(struct dat *ret, int fd, struct error *err);
void dat_deinit(struct dat *d);
/* Chooses buffers and checks that they are compatible. */
int dat_choose(struct dat *d, const char *instance, struct error *err);

/* read_options.c: reads all options from `offset` on. */
int dat_options_v6(struct dat *d, uint64_t *at, struct error *err);
int dat_options_v7(struct dat *d, struct error *err);
/* -ENOMEM, or -EBADMSG: too many buffers. */
int dat_add_buffer(struct dat *d, const char *name, struct dat_buffer **ret, struct error *err);
/* The bracketed name in a text of the file trace_clock, else the whole text. */
void dat_clock_name(const char *text, size_t len, char ret[static 32]);

/* Adds one sentence for the user. */
void dat_note(struct buf *to, const char *fmt, ...) _printf_(2, 3);

/* A position in the file, or in an expanded section. */
struct dat_cursor {
	const struct dat *dat;
	const uint8_t *memory; /* NULL: in the file */
	uint64_t at, end;
	const char *what; /* noun for errors: "event formats" */
};
/* Reads from offset to the end of the file. */
void dat_cursor_file(struct dat_cursor *ret, const struct dat *d, uint64_t offset,
		     const char *what);
/*
 * Version 7: the content of the section at offset, which must have this id. A compressed one is
 * expanded into memory, to at most DAT_SECTION_MAX bytes.
 */
int dat_cursor_section(struct dat_cursor *ret, const struct dat *d, uint64_t offset, unsigned id,
		       const char *what, struct buf *memory, struct error *err);
/* Kernel symbols are the longest section. */
#define DAT_SECTION_MAX (STREAM_KALLSYMS_MAX + (16U << 20))

/* All return 0, or -EBADMSG at the cursor's end. */
int dat_bytes(struct dat_cursor *c, void *ret, size_t len, struct error *err);
int dat_skip(struct dat_cursor *c, uint64_t len, struct error *err);
int dat_u16(struct dat_cursor *c, uint16_t *ret, struct error *err);
int dat_u32(struct dat_cursor *c, uint32_t *ret, struct error *err);
int dat_u64(struct dat_cursor *c, uint64_t *ret, struct error *err);
/* Reads up to a NUL; truncates to the size of ret. */
int dat_string(struct dat_cursor *c, char *ret, size_t size, struct error *err);
/* Appends len bytes. */
int dat_append(struct dat_cursor *c, uint64_t len, struct buf *to, struct error *err);
/* Error for an invalid value. */
int dat_damaged(const struct dat_cursor *c, struct error *err);

/* read_unpack.c: expands a block to at most max bytes. Returns the size, or -EBADMSG. */
int64_t dat_unpack(const struct dat *d, const void *from, size_t len, void *to, size_t max,
		   struct error *err);
/* -EOPNOTSUPP: unknown compression. */
int dat_packing_find(struct dat *d, const char *name, struct error *err);
void dat_packing_deinit(struct dat *d);

/* read_data.c: sub-buffers of one CPU, about a MiB at a time. */
struct dat_run {
	const struct dat *dat;
	struct dat_cursor from;
	uint32_t page_size;
	bool packed;
	uint32_t blocks;	   /* compressed blocks not yet read */
	uint64_t stored, expanded; /* bytes read so far */
	struct buf block;
	struct buf pages; /* whole sub-buffers */
	bool cut;	  /* the file is truncated or damaged here */
};
int dat_run_open(struct dat_run *ret, const struct dat *d, const struct dat_buffer *b,
		 const struct dat_cpu *cpu, struct error *err);
/* 1: pages has the next sub-buffers, about max bytes or one block; 0: no more. */
int dat_run_next(struct dat_run *run, size_t max, struct error *err);
/*
 * Range of the next sub-buffers in the file: returns its bytes; 0: no more. Not for compressed
 * buffers.
 */
uint32_t dat_run_place(struct dat_run *run, uint64_t *ret_offset);
#define DAT_RUN_BYTES (1U << 20)
void dat_run_deinit(struct dat_run *run);
