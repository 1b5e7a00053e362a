/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes whole sub-buffers out of one CPU's ring, without looking into them. Three ways, the same
 * result:
 *
 * - mmap (Linux 6.10+), when asked for: the ring's pages are mapped; an ioctl hands one after
 *   the other to user space. It also hands out the page that the kernel is
 *   still filling, as far as it is filled, and consumes it up to there. Such a
 *   page is kept in `open` until it is whole; only a flush gives it out before.
 * - splice: pages are moved through a pipe, whole ones only; a flush takes the
 *   last, partial one by read(2).
 * - read: a page a system call. The kernel gives out partial pages too; each is
 *   a whole sub-buffer of its own, with its own time stamp.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "daemon/capture/capture.h"
#include "stream/layout.h"

#define STAGING_SUBBUFS 64

/* Room that the readers of one thread share. */
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
	bool hot;     /* had more than the last visit could take */
	bool refused; /* the last visit got nothing, for now: its CPU goes, or memory is short */
	bool watched; /* its fd is in the capture's epoll set */
	unsigned idle_wakeups;
	uint64_t bytes; /* given out */

	/* mmap */
	const volatile struct ring_meta *meta;
	size_t mapped;
	uint32_t nr_subbufs; /* behind the meta page */
	const uint8_t *subbufs;
	uint32_t last_id, last_read; /* the reader page and how far it was consumed */
	uint8_t *open;		     /* its copy, if open_valid */
	bool open_valid;
	uint32_t emitted; /* bytes of its data that a flush has given out */
};

/*
 * kind AUTO: splice, or read where no pipe can be made; mmap only when
 * asked for (-ENODEV: this kernel can't). -ENOENT: the ring has no such CPU.
 * -ENOBUFS: the staging room is for smaller sub-buffers.
 */
int cpu_reader_open(struct cpu_reader *r, int instance_dir, unsigned cpu, enum capture_reader kind,
		    const struct subbuf_layout *layout, const struct staging *s);
void cpu_reader_close(struct cpu_reader *r);

struct batch {
	const void *data; /* in the staging room, valid until its next use */
	unsigned subbufs;
	uint32_t skip; /* as in struct subbufs_header */
	bool more;     /* there may be more */
};

/*
 * Up to max (at most STAGING_SUBBUFS) sub-buffers. flush: also the one that the
 * kernel is filling, as far as it is. Returns 0 (subbufs may be 0) or -errno.
 */
int cpu_reader_take(struct cpu_reader *r, struct staging *s, unsigned max, bool flush,
		    struct batch *ret);

const char *cpu_reader_kind_name(enum capture_reader kind);
