/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/marks/ring.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/io.h"
#include "traced/mark_record.h"

#define HEADER_MAX (64U << 10) /* the largest page size */

static int check_message(const struct marks_message *m, struct error *err)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);

	if (m->size < MARK_RING_MIN || m->size > MARK_RING_MAX || (m->size & (m->size - 1)))
		return error_set(err, -EINVAL, "invalid size of a ring: %u bytes", m->size);
	if (!m->header || m->header % page || m->header > HEADER_MAX)
		return error_set(err, -EINVAL, "invalid size of a ring's header: %u bytes",
				 m->header);
	return 0;
}

/* Requires a file that cannot shrink and consists of plain memory, so that no access can fail. */
static int check_file(int fd, uint64_t size, struct error *err)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return error_set(err, -EPERM, "a ring is not a sealed memfd");
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return error_errno(err, -errno, "cannot inspect a ring's memfd");
	if (!S_ISREG(st.st_mode) || fs.f_type != TMPFS_MAGIC)
		return error_set(err, -EPERM, "a ring is not in tmpfs memory");
	if (st.st_size < 0 || (uint64_t)st.st_size < size)
		return error_set(err, -EINVAL, "a ring is larger than its memfd");
	return 0;
}

int marks_ring_open(struct marks_ring *ret, int fd, const struct marks_message *m,
		    struct error *err)
{
	_cleanup_close_ int owned = fd;
	int r = check_message(m, err);
	void *p;

	if (r == 0)
		r = check_file(fd, (uint64_t)m->header + m->size, err);
	if (r < 0)
		return r;
	p = mmap(NULL, m->header, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return error_errno(err, -errno, "cannot map a ring");
	*ret = (struct marks_ring){
		.fd = TAKE_FD(owned),
		.shared = p,
		.header = m->header,
		.size = m->size,
		.mask = m->size - 1,
	};
	__atomic_store_n(&ret->shared->tail, 0, __ATOMIC_RELEASE);
	return 0;
}

void marks_ring_close(struct marks_ring *r)
{
	if (r->shared)
		munmap(r->shared, r->header);
	r->shared = NULL;
	r->fd = close_fd(r->fd);
}

int64_t marks_ring_waiting(const struct marks_ring *r)
{
	uint32_t used = __atomic_load_n(&r->shared->head, __ATOMIC_ACQUIRE) - r->tail;

	return used > r->size || used % MARK_ALIGN ? -EBADMSG : (int64_t)used;
}

static void advance(struct marks_ring *r, uint32_t bytes)
{
	r->tail += bytes;
	__atomic_store_n(&r->shared->tail, r->tail, __ATOMIC_RELEASE);
}

/* The shared counter has 32 bits. It is read long before it can wrap around. */
static void count_dropped(struct marks_ring *r)
{
	uint32_t now = __atomic_load_n(&r->shared->dropped, __ATOMIC_RELAXED);

	r->dropped += now - (uint32_t)r->dropped;
}

static int read_part(const struct marks_ring *r, uint32_t from, uint32_t bytes, struct buf *out)
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
	count_dropped(r);
	first = MIN((uint32_t)waiting, r->size - from);
	if (first)
		e = read_part(r, from, first, out);
	if (e == 0 && first < (uint32_t)waiting)
		e = read_part(r, 0, (uint32_t)waiting - first, out);
	if (e < 0) {
		out->len = before;
		return e;
	}
	if (waiting)
		advance(r, (uint32_t)waiting);
	return waiting;
}

int marks_ring_discard(struct marks_ring *r)
{
	int64_t waiting = marks_ring_waiting(r);

	if (waiting < 0)
		return (int)waiting;
	count_dropped(r);
	advance(r, (uint32_t)waiting);
	return 0;
}

bool marks_ring_closed(const struct marks_ring *r)
{
	return __atomic_load_n(&r->shared->closed, __ATOMIC_ACQUIRE) != 0;
}
