/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies /proc/kallsyms to a stream, one part per step.
 *
 * The stream gets all symbols, or an excerpt alone. All symbols are one KALLSYMS chunk. Before it
 * comes the excerpt, which is enough for most readers; after it come the symbols of new modules.
 * The excerpt alone needs less of the file, whose text the kernel generates slowly
 * (docs/performance.md). The whole text may still follow an excerpt that seemed enough at first.
 */
#pragma once

#include "base/buf.h"
#include "stream/writer.h"

/*
 * The excerpt, which is the same until the next boot: no module changes the lines of the kernel
 * itself. The captures of all threads share it.
 */
struct excerpt_memory {
	int state; /* 0: empty, 1: being filled, 2: filled */
	size_t len;
	char text[512];
};

struct kernel_symbols {
	bool hidden;		       /* kptr_restrict hides the addresses */
	bool cut;		       /* more symbols than a stream may hold */
	bool excerpt_alone;	       /* only the excerpt is written so far */
	struct excerpt_memory *memory; /* borrowed; NULL: none */
	int fd;
	struct buf text;
	struct buf modules;  /* names and addresses of the modules loaded at that time */
	struct buf at_start; /* the same at the recording's start, if symbols are read later */
};

/* Bytes read per step. */
#define KERNEL_SYMBOLS_STEP (512U << 10)

#define KERNEL_SYMBOLS_INIT ((struct kernel_symbols){ .fd = -EBADF })

void kernel_symbols_deinit(struct kernel_symbols *s);
/*
 * proc: procfs's directory. all: write all symbols; otherwise the excerpt, or all if no excerpt is
 * found. Returns 1: more to do; 0: written; or -errno.
 */
int kernel_symbols_step(struct kernel_symbols *s, const char *proc, bool all,
			struct stream_writer *w);
/* Before the start of a recording whose symbols are read later. 0 or -ENOMEM. */
int kernel_symbols_note_modules(struct kernel_symbols *s, const char *proc);
/*
 * After all symbols are written: appends "[NAME]" lines of the modules that were loaded at the
 * start and are gone: their symbols are missing. 0 or -ENOMEM.
 */
int kernel_symbols_find_gone(const struct kernel_symbols *s, struct buf *out);
/* After all symbols are written: adds those of modules loaded since. 0 or -errno. */
int kernel_symbols_update(struct kernel_symbols *s, const char *proc, struct stream_writer *w);
