/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * /proc/kallsyms to a stream, a part read in each step: all of it once, in a KALLSYMS chunk behind
 * an excerpt that spares most readers the rest, and later what modules bring; or the excerpt alone,
 * for which less of it is read: to make that text takes the kernel long (docs/performance.md). All
 * of it may still follow an excerpt that was enough before.
 */
#pragma once

#include "base/buf.h"
#include "stream/writer.h"

struct kernel_symbols {
	bool hidden;	    /* kptr_restrict gave zeros */
	bool cut;	    /* there are more than a stream holds */
	bool excerpt_alone; /* was written */
	int fd;
	struct buf text;
	struct buf modules; /* the names and places of those that were loaded then */
};

/* Read in one step. */
#define KERNEL_SYMBOLS_STEP (512U << 10)

#define KERNEL_SYMBOLS_INIT ((struct kernel_symbols){ .fd = -EBADF })

void kernel_symbols_deinit(struct kernel_symbols *s);
/*
 * proc: where procfs is. all: else the excerpt is enough, and all is written where there can't be
 * one. 1: there is more to do; 0: it is written; or -errno.
 */
int kernel_symbols_step(struct kernel_symbols *s, const char *proc, bool all,
			struct stream_writer *w);
/* Once all of them are written: those of modules that came since. 0 or -errno. */
int kernel_symbols_update(struct kernel_symbols *s, const char *proc, struct stream_writer *w);
