/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Taking marks out of memory that an untrusted program writes.
 *
 * The problem: any user may make marks, so any user may map a ring and write whatever they like
 * into it, at any time, also while it is read. The daemon runs with more rights than they have. It
 * must not fault, not allocate without bound, not read outside the ring, and not copy one user's
 * bytes into another's ring. All that while a thread writes marks without locks or system calls.
 *
 *	memfd, sealed against shrinking
 *	┌──────────────────────┬───────────────────────────────────────────┐
 *	│ struct mark_ring     │ records, wrapping around                  │
 *	│ head dropped closed  │        ┌── tail          head ──┐         │
 *	│ tail                 │ free   │▓▓▓▓ ours to take ▓▓▓▓▓▓│ free    │
 *	└──────────────────────┴────────┴───────────────────────┴──────────┘
 *	  mapped                 read by pread(2), never mapped
 *
 * head and tail count bytes since the ring was made, modulo 2^32; the size is a power of two, so
 * the offset is a mask. The thread stores head with release after the record; the daemon loads it
 * with acquire, copies the bytes, and stores tail with release. Neither ever waits for the other.
 *
 * Invariants:
 * - The daemon trusts only its own `tail`. The shared one is written for the thread, never read.
 * - head is loaded once per take. Every length is computed from that copy, after the check that it
 *   is at most the ring's size and aligned. A head that fails the check ends the ring (-EBADMSG).
 * - Bytes are copied without looking into them. They may change during the copy; the exporter,
 *   which has no privileges, checks each record.
 * - tail advances only after all bytes are in the buffer. If memory is short, the marks stay in
 *   the ring, and a full ring costs its own thread's marks only (`dropped`).
 * - No access can fail: the memfd is sealed against shrinking and growing, it must be a regular
 *   file on tmpfs, and it is checked to be as long as the message says, before the first access.
 * - No access waits for a hole that the program punches: the daemon seals the memfd against that
 *   (F_SEAL_FUTURE_WRITE, Linux 5.1) once it has mapped the header.
 * - `dropped` is 64 bits here. The shared counter has 32, and only its change is added.
 *
 * Why pread and not a mapping of the records: reading a hole through a mapping would allocate its
 * page, so a program could make the daemon fill 16 MiB for each ring. pread returns zeros for a
 * hole and allocates nothing. Only the header is mapped, because head and tail need atomics.
 */
#include "daemon/marks/ring.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/io.h"
#include "traced/mark_record.h"

#define HEADER_MAX (64U << 10) /* the largest page size */
#ifndef F_SEAL_EXEC	       /* Linux 6.3; MFD_NOEXEC_SEAL sets it */
#define F_SEAL_EXEC 0x0020
#endif

static int marks_ring_check_message(const struct marks_message *m, struct error *err)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);

	if (m->size < MARK_RING_MIN || m->size > MARK_RING_MAX || (m->size & (m->size - 1)))
		return error_set(err, -EINVAL, "invalid size of a ring: %u bytes", m->size);
	if (!m->header || m->header % page || m->header > HEADER_MAX)
		return error_set(err, -EINVAL, "invalid size of a ring's header: %u bytes",
				 m->header);
	return 0;
}

/*
 * Requires plain memory that cannot shrink, so that no access can fail, and not more of it than the
 * ring: the kernel locks a memfd while it allocates its memory, and whoever seals it waits for so
 * long. The seals come first: other files, which have none, may block in fstat().
 */
static int marks_ring_check_file(int fd, uint64_t size, struct error *err)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0 || (seals & ~F_SEAL_EXEC) != (F_SEAL_SHRINK | F_SEAL_GROW))
		return error_set(err, -EPERM, "a ring is not a memfd whose size alone is sealed");
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return error_errno(err, -errno, "cannot inspect a ring's memfd");
	if (!S_ISREG(st.st_mode) || fs.f_type != TMPFS_MAGIC)
		return error_set(err, -EPERM, "a ring is not in tmpfs memory");
	if (st.st_size < 0 || (uint64_t)st.st_size != size)
		return error_set(err, -EINVAL, "a ring has not the size of its memfd");
	return 0;
}

/* The program writes by the mapping that it has. */
static int marks_ring_seal(int fd, struct error *err)
{
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0 && errno != EINVAL)
		return error_errno(err, -errno, "cannot seal a ring");
	return 0;
}

int marks_ring_open(struct marks_ring *ret, int fd, const struct marks_message *m,
		    struct error *err)
{
	int r = marks_ring_check_message(m, err);
	void *p;

	if (r == 0)
		r = marks_ring_check_file(fd, (uint64_t)m->header + m->size, err);
	if (r < 0)
		return r;
	p = mmap(NULL, m->header, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return error_errno(err, -errno, "cannot map a ring");
	r = marks_ring_seal(fd, err);
	if (r < 0) {
		munmap(p, m->header);
		return r;
	}
	*ret = (struct marks_ring){
		.fd = fd,
		.shared = p,
		.header = m->header,
		.size = m->size,
		.mask = m->size - 1,
	};
	__atomic_store_n(&ret->shared->tail, 0, __ATOMIC_RELEASE);
	return 0;
}

int marks_ring_close(struct marks_ring *r)
{
	/* The descriptor still holds the file, so this does not free the memory. */
	if (r->shared)
		munmap(r->shared, r->header);
	r->shared = NULL;
	return TAKE_FD(r->fd);
}

int64_t marks_ring_waiting(const struct marks_ring *r)
{
	uint32_t used = __atomic_load_n(&r->shared->head, __ATOMIC_ACQUIRE) - r->tail;

	return used > r->size || used % MARK_ALIGN ? -EBADMSG : (int64_t)used;
}

static void marks_ring_advance(struct marks_ring *r, uint32_t bytes)
{
	r->tail += bytes;
	__atomic_store_n(&r->shared->tail, r->tail, __ATOMIC_RELEASE);
}

/* The shared counter has 32 bits. It is read long before it can wrap around. */
static void marks_ring_count_dropped(struct marks_ring *r)
{
	uint32_t now = __atomic_load_n(&r->shared->dropped, __ATOMIC_RELAXED);

	r->dropped += now - (uint32_t)r->dropped;
}

static int marks_ring_read_part(const struct marks_ring *r, uint32_t from, uint32_t bytes,
				struct buf *out)
{
	char *to = buf_reserve(out, bytes);
	ssize_t n;

	if (!to)
		return -ENOMEM;
	n = pread_full(r->fd, to, bytes, (off_t)r->header + from);
	if (n != (ssize_t)bytes)
		return n < 0 ? (int)n : -EBADMSG;
	out->len += bytes;
	return 0;
}

int64_t marks_ring_take(struct marks_ring *r, struct buf *out)
{
	int64_t waiting = marks_ring_waiting(r);
	uint32_t from = r->tail & r->mask, first;
	size_t before = out->len;
	int e = 0;

	if (waiting < 0)
		return waiting;
	marks_ring_count_dropped(r);
	first = MIN((uint32_t)waiting, r->size - from);
	if (first)
		e = marks_ring_read_part(r, from, first, out);
	if (e == 0 && first < (uint32_t)waiting)
		e = marks_ring_read_part(r, 0, (uint32_t)waiting - first, out);
	if (e < 0) {
		out->len = before;
		return e;
	}
	if (waiting)
		marks_ring_advance(r, (uint32_t)waiting);
	return waiting;
}

int marks_ring_discard(struct marks_ring *r)
{
	int64_t waiting = marks_ring_waiting(r);

	if (waiting < 0)
		return (int)waiting;
	marks_ring_count_dropped(r);
	marks_ring_advance(r, (uint32_t)waiting);
	return 0;
}

bool marks_ring_closed(const struct marks_ring *r)
{
	return __atomic_load_n(&r->shared->closed, __ATOMIC_ACQUIRE) != 0;
}
