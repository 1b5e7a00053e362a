/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emit.h"

/* A signal handler may run between any two of these statements. */
void ring_drop(struct thread *t, struct ring *r)
{
	uint64_t n = __atomic_add_fetch(&t->dropped, 1, __ATOMIC_RELAXED), now;

	if (!r)
		return;
	__atomic_add_fetch(&r->pending, 1, __ATOMIC_RELAXED);
	r->limit = r->head; /* the next record must report the loss first */
	while (__atomic_store_n(&r->shared->dropped, (uint32_t)n, __ATOMIC_RELAXED),
	       (now = __atomic_load_n(&t->dropped, __ATOMIC_RELAXED)) != n)
		n = now;
}

static void ring_write_control(struct ring *r, enum mark_control what, uint32_t label,
			       uint64_t count)
{
	char *p = ring_at(r, r->head);

	mark_put_record(p, 4, (uint8_t)what, 0, label, clock_ns(CLOCK_BOOTTIME));
	mark_put_number(p + 16, MARK_COUNT, MARK_UINT, count);
	ring_publish(r, r->head + CONTROL_BYTES);
}

bool ring_make_room(struct thread *t, struct ring *r, uint32_t need)
{
	uint32_t size = r->mask + 1, much = size / 4;
	uint32_t tail = __atomic_load_n(&r->shared->tail, __ATOMIC_ACQUIRE);
	uint32_t used = r->head - tail, next;
	bool full = used > size || size - used < need + CONTROL_BYTES;

	/* A dropped mark must not cost a system call each time. */
	if (used >= much && r->looked_for != tail && (process_wake() || full))
		r->looked_for = tail;
	if (full) {
		ring_drop(t, r);
		return false;
	}
	if (r->pending) {
		ring_write_control(r, MARK_LOST, 0,
				   __atomic_exchange_n(&r->pending, 0, __ATOMIC_RELAXED));
		used += CONTROL_BYTES;
	}
	/* At each quarter of the ring read tail again, and wake the daemon if needed. */
	next = need > much ? need : much;
	if (used + need <= much)
		r->limit = tail + much;
	else
		r->limit = size - used > next ? r->head + next : tail + size;
	return true;
}

/* A recording that has just begun has no labels: forgets which ones the ring has. */
bool ring_begin_epoch(struct thread *t, struct ring *r, uint32_t generation)
{
	if (!ring_has_room(r, CONTROL_BYTES) && !ring_make_room(t, r, CONTROL_BYTES))
		return false;
	memset(r->defined, 0, sizeof(r->defined));
	ring_write_control(r, MARK_EPOCH, generation, t->base);
	r->generation = generation;
	return true;
}

static uint32_t label_number(struct traced_label *label)
{
	static uint32_t last;
	uint32_t number = __atomic_load_n(&label->id, __ATOMIC_RELAXED), none = 0;

	if (number)
		return number;
	if (__atomic_load_n(&last, __ATOMIC_RELAXED) >= LABEL_MAX - 1)
		return LABEL_MAX;
	number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	if (number >= LABEL_MAX)
		return LABEL_MAX;
	/* If two threads compete, the first one's number counts; the other number stays unused. */
	return __atomic_compare_exchange_n(&label->id, &none, number, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED)
		       ? number
		       : none;
}

/* Deeper stacks are cut. */
#define FRAMES_MAX 128

static int64_t ring_define_one(struct thread *t, struct ring *r, struct traced_label *label)
{
	struct traced_label *parent = label->parent;
	const char *category = label->category ?: "", *name = label->name ?: "";
	uint32_t number = label_number(label), need = 16;
	char *p;

	if (number >= LABEL_MAX)
		return 0;
	if (ring_knows(r, number))
		return number;
	need += mark_text_bytes(strlen(name)) +
		(*category ? mark_text_bytes(strlen(category)) : 0) + (parent ? 16 : 0);
	if (need > RECORD_MAX(r)) {
		ring_drop(t, r);
		return -E2BIG;
	}
	if (!ring_has_room(r, need) && !ring_make_room(t, r, need))
		return -ENOSPC;
	p = ring_at(r, r->head);
	mark_put_record(p, (uint16_t)(need / 8), MARK_DEFINE, 0, number, clock_ns(CLOCK_BOOTTIME));
	p = mark_put_text(p + 16, MARK_NAME, MARK_STRING, 0, name, strlen(name));
	if (*category)
		p = mark_put_text(p, MARK_CATEGORY, MARK_STRING, 0, category, strlen(category));
	if (parent)
		mark_put_number(p, MARK_PARENT, MARK_LABEL,
				__atomic_load_n(&parent->id, __ATOMIC_RELAXED));
	ring_publish(r, r->head + need);
	r->defined[number / 64] |= UINT64_C(1) << number % 64;
	return number;
}

int64_t ring_define(struct thread *t, struct ring *r, struct traced_label *label)
{
	struct traced_label *chain[FRAMES_MAX];
	size_t depth = 0;
	int64_t number = 0;

	for (; label && depth < FRAMES_MAX; label = label->parent)
		chain[depth++] = label;
	while (depth && number >= 0)
		number = ring_define_one(t, r, chain[--depth]);
	return number;
}

static int ring_make_memfd(size_t size)
{
	int fd = (int)syscall(SYS_memfd_create, "traced-marks",
			      MFD_CLOEXEC | MFD_ALLOW_SEALING | 8U /* MFD_NOEXEC_SEAL */);

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = (int)syscall(SYS_memfd_create, "traced-marks",
				  MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

/* The mapping: struct ring (private) | shared header | records | the same records again. */
struct ring *ring_new(size_t size, int *ret_fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t own = (sizeof(struct ring) + page - 1) / page * page;
	size_t whole = own + page + 2 * size;
	int fd = ring_make_memfd(page + size);
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_FIXED;
	struct ring *r;
	char *base;

	if (fd < 0)
		return NULL;
	base = mmap(NULL, whole, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED) {
		close(fd);
		return NULL;
	}
	if (mmap(base + own, page + size, prot, flags, fd, 0) == MAP_FAILED ||
	    mmap(base + own + page + size, size, prot, flags, fd, (off_t)page) == MAP_FAILED ||
	    madvise(base, own, MADV_WIPEONFORK) < 0 ||
	    madvise(base + own, page + 2 * size, MADV_DONTFORK) < 0) {
		munmap(base, whole);
		close(fd);
		return NULL;
	}
	r = (struct ring *)(void *)base;
	r->shared = (struct mark_ring *)(void *)(base + own);
	r->data = base + own + page;
	r->mask = (uint32_t)size - 1;
	r->header = (uint32_t)page;
	r->looked_for = UINT32_MAX; /* not a tail: tails are multiples of 8 */
	r->mapped = whole;
	*ret_fd = fd;
	return r;
}

void ring_forget(struct thread *t)
{
	struct ring *r = t->ring;

	/* A signal handler's mark may look at the ring at any time. */
	t->ring = NULL;
	barrier();
	if (r)
		munmap(r, t->mapped);
}
