/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes whole sub-buffers out of one CPU's ring, without decoding them. Three ways, the same
 * result:
 *
 * - mmap (Linux 6.10+), only on request: maps the ring's pages; each ioctl hands one to user
 *   space. The kernel also hands out the page that it is filling, and counts its data as consumed.
 *   Such a page is kept in `open` until it is whole; only a flush emits it earlier.
 * - splice: moves whole pages through a pipe; a flush takes the last, partial page by read(2).
 * - read: one page per system call. The kernel returns partial pages, too; each is a sub-buffer of
 *   its own, with its own time stamp.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "daemon/capture/capture.h"
#include "stream/layout.h"

#define STAGING_SUBBUFS 64

/* Memory shared by the readers of one thread. */
struct staging {
	uint8_t *data; /* STAGING_SUBBUFS + 1 sub-buffers */
	uint32_t subbuf_size;
	int pipe[2]; /* for splice; empty between two takes */
};
#define STAGING_INIT ((struct staging){ .pipe = { -EBADF, -EBADF } })
int staging_init(struct staging *s, uint32_t subbuf_size);
void staging_deinit(struct staging *s);

struct ring_meta;

struct cpu_reader {
	unsigned cpu;
	int fd; /* trace_pipe_raw; -EBADF: not open */
	enum capture_reader kind;
	struct subbuf_layout layout;
	bool hot;     /* the last visit could not take everything */
	bool refused; /* the last visit failed for now: its CPU goes offline, or memory is short */
	bool watched; /* its fd is in the capture's epoll set */
	unsigned idle_wakeups;
	uint64_t bytes; /* emitted */

	/* For mmap only. */
	const volatile struct ring_meta *meta;
	size_t mapped;
	uint32_t nr_subbufs; /* mapped after the meta page */
	const uint8_t *subbufs;
	uint32_t last_id, last_read; /* id of the reader page, and its bytes consumed */
	uint8_t *open;		     /* the page's copy, if open_valid */
	bool open_valid;
	uint32_t emitted; /* bytes of its data that a flush has emitted */
};

/*
 * kind AUTO: splice, or read if no pipe can be made; mmap only on request (-ENODEV: not on this
 * kernel). -ENOENT: the ring has no such CPU. -ENOBUFS: the staging memory is for smaller
 * sub-buffers.
 */
int cpu_reader_open(struct cpu_reader *r, int instance_dir, unsigned cpu, enum capture_reader kind,
		    const struct subbuf_layout *layout, const struct staging *s);
void cpu_reader_close(struct cpu_reader *r);

struct batch {
	const void *data; /* in the staging memory, valid until its next use */
	unsigned subbufs;
	uint32_t skip; /* as in struct subbufs_header */
	bool more;     /* there may be more */
};

enum take {
	TAKE_FULL, /* full sub-buffers only */
	TAKE_ALL,  /* until the ring is empty */
	/*
	 * What the ring has now. If system calls are traced, each one that reads leaves events, so
	 * a ring that records is never empty.
	 */
	TAKE_PRESENT,
};

/* Takes up to max (at most STAGING_SUBBUFS) sub-buffers. Returns 0 (subbufs may be 0) or -errno. */
int cpu_reader_take(struct cpu_reader *r, struct staging *s, unsigned max, enum take take,
		    struct batch *ret);

const char *cpu_reader_kind_name(enum capture_reader kind);
