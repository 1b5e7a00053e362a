/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace.dat of version 6 or 7, as trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5)
 * describe it. dat_open finds where everything lies, dat_write makes the stream of it.
 *
 * A version 6 is one sequence, with the options near its end. A version 7 is sections, which
 * options name by their offset; each may be compressed. Numbers are of the recorded machine's byte
 * order.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "formats/dat/format.h"
#include "stream/layout.h"
#include "stream/writer.h"

enum dat_packing { DAT_PLAIN, DAT_ZLIB, DAT_ZSTD };

/* What one CPU wrote into a buffer, as it lies in the file. */
struct dat_cpu {
	uint32_t cpu;
	uint64_t offset, size;
};

struct dat_buffer {
	char name[256];
	char clock[32]; /* "": not known */
	uint32_t page_size;
	bool packed;
	bool is_text; /* of a latency tracer: no sub-buffers */
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
	uint64_t parts[DAT_PARTS]; /* offsets; 0: there is none */
	uint64_t options;	   /* of the first options */
	uint64_t tables;	   /* version 6: of the top-level buffer's table of CPUs */
	/* What the options say. */
	uint32_t cpus;
	char uname[512], program[128];
	/*
	 * "": as each buffer says. Where the options tell, they are to be believed: for
	 * instances trace-cmd writes the top-level buffer's clock elsewhere.
	 */
	char clock[32];
	bool has_clock;
	int64_t time_offset; /* ns */
	uint32_t time_mult, time_shift;
	struct dat_buffer *buffers; /* owned; at most DAT_BUFFERS_MAX */
	size_t buffer_count;
	struct buf notes; /* sentences, NUL after each */
	struct buf gaps;  /* the same of what is missing */
	/* For dat_write. */
	struct buf header_page;
	struct subbuf_layout layout;
	unsigned word_size;
};
#define _cleanup_dat_ _cleanup_(dat_deinit)

int dat_open(struct dat *ret, int fd, struct error *err);
void dat_deinit(struct dat *d);
/* Chooses buffers, and looks whether they go together. */
int dat_choose(struct dat *d, const char *instance, struct error *err);

/* dat_options.c: all options, from offset on. */
int dat_options_v6(struct dat *d, uint64_t *at, struct error *err);
int dat_options_v7(struct dat *d, struct error *err);
/* -ENOMEM, or -EBADMSG: too many of them. */
int dat_add_buffer(struct dat *d, const char *name, struct dat_buffer **ret, struct error *err);
/* The one that has brackets in a text as of the file trace_clock, else all of it. */
void dat_clock_name(const char *text, size_t len, char ret[static 32]);

/* One sentence for who reads the result. */
void dat_note(struct buf *to, const char *fmt, ...) _printf_(2, 3);

/* A place in the file, or in a section that was expanded. */
struct dat_cursor {
	const struct dat *dat;
	const uint8_t *memory; /* NULL: the file */
	uint64_t at, end;
	const char *what; /* for errors: "event formats" */
};
/* From offset to the file's end. */
void dat_cursor_file(struct dat_cursor *ret, const struct dat *d, uint64_t offset,
		     const char *what);
/*
 * Of a version 7: the content of the section at offset, which has to have this number; expanded
 * into memory, if it is compressed, of at most DAT_SECTION_MAX bytes.
 */
int dat_cursor_section(struct dat_cursor *ret, const struct dat *d, uint64_t offset, unsigned id,
		       const char *what, struct buf *memory, struct error *err);
/* Kernel symbols are what is long in a section. */
#define DAT_SECTION_MAX (STREAM_KALLSYMS_MAX + (16U << 20))

/* All: 0, or -EBADMSG where the cursor's end comes first. */
int dat_bytes(struct dat_cursor *c, void *ret, size_t len, struct error *err);
int dat_skip(struct dat_cursor *c, uint64_t len, struct error *err);
int dat_u16(struct dat_cursor *c, uint16_t *ret, struct error *err);
int dat_u32(struct dat_cursor *c, uint32_t *ret, struct error *err);
int dat_u64(struct dat_cursor *c, uint64_t *ret, struct error *err);
/* Up to a NUL; what ret has no room for is left out. */
int dat_string(struct dat_cursor *c, char *ret, size_t size, struct error *err);
/* Appends len bytes. */
int dat_append(struct dat_cursor *c, uint64_t len, struct buf *to, struct error *err);
/* What it says of itself can't be. */
int dat_damaged(const struct dat_cursor *c, struct error *err);

/* dat_unpack.c: expands a block to at most max bytes; returns how many, or -EBADMSG. */
int64_t dat_unpack(const struct dat *d, const void *from, size_t len, void *to, size_t max,
		   struct error *err);
/* -EOPNOTSUPP: nobody here knows it. */
int dat_packing_find(struct dat *d, const char *name, struct error *err);
void dat_packing_deinit(struct dat *d);

/* dat_data.c: one CPU's sub-buffers, a run of them at a time: those of a MiB or so. */
struct dat_run {
	const struct dat *dat;
	struct dat_cursor from;
	uint32_t page_size;
	bool packed;
	uint32_t blocks;	   /* compressed ones that are still to come */
	uint64_t stored, expanded; /* bytes so far */
	struct buf block;
	struct buf pages; /* whole sub-buffers */
	bool cut;	  /* the file ended, or what it holds is damaged */
};
int dat_run_open(struct dat_run *ret, const struct dat *d, const struct dat_buffer *b,
		 const struct dat_cpu *cpu, struct error *err);
/* 1: pages holds the next ones, about max bytes of them, or one block; 0: there are none. */
int dat_run_next(struct dat_run *run, size_t max, struct error *err);
/* Where the next ones lie in the file; bytes, 0: there are none. Not of a compressed buffer. */
uint32_t dat_run_place(struct dat_run *run, uint64_t *ret_offset);
#define DAT_RUN_BYTES (1U << 20)
void dat_run_deinit(struct dat_run *run);
