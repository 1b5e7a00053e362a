/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/rings/ring.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>

#include "base/io.h"
#include "daemon/capture/tracefs/feature.h"

static int count_cpus(int dir)
{
	int fd = tracefs_open_file(dir, O_RDONLY | O_DIRECTORY, "per_cpu");
	unsigned highest = 0, cpu;
	bool any = false;
	struct dirent *e;
	DIR *d;

	if (fd < 0)
		return fd;
	d = fdopendir(fd);
	if (!d) {
		close_fd(fd);
		return -errno;
	}
	while ((e = readdir(d))) {
		if (sscanf(e->d_name, "cpu%u", &cpu) != 1 || cpu > CPU_LIST_MAX)
			continue;
		highest = MAX(highest, cpu);
		any = true;
	}
	closedir(d);
	return any ? (int)highest + 1 : -ENOENT;
}

void ring_read_online(struct ring *ring)
{
	_cleanup_(cpu_set_deinit) struct cpu_set set = { 0 };
	char text[4096];
	ssize_t n = pread(ring->online_fd, text, sizeof(text) - 1, 0);
	bool known = n >= 0;

	if (known) {
		text[n] = '\0';
		text[strcspn(text, "\n")] = '\0';
		known = parse_cpu_list(text, &set, NULL) == 0;
	}
	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++)
		ring->cpus[cpu].online = !known || cpu_set_has(&set, cpu);
}

/* The file stays open: it is read again. */
static void ring_open_online(struct ring *ring, const char *sys)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/devices/system/cpu/online", sys);
	ring->online_fd = open(path, O_RDONLY | O_CLOEXEC);
	ring_read_online(ring);
}

static int ring_open_reader(struct ring *ring, unsigned cpu, const struct staging *s)
{
	struct cpu_reader *r = &ring->cpus[cpu].reader;
	int code;

	code = cpu_reader_open(r, ring->dir, cpu, ring->kind, &ring->layout, s);
	if (code == -ENODEV && ring->kind == CAPTURE_READER_MMAP)
		code = -EOPNOTSUPP;
	return code;
}

int ring_open(struct ring *ring, enum subbufs_buffer buffer, int dir, const char *sys,
	      const struct cpu_set *wanted, enum capture_reader kind,
	      const struct subbuf_layout *layout, const struct staging *s, struct error *err)
{
	int n = count_cpus(dir), r;

	*ring = (struct ring){ .buffer = buffer,
			       .dir = dir,
			       .switch_fd = -EBADF,
			       .online_fd = -EBADF,
			       .kind = kind,
			       .wanted = wanted,
			       .layout = *layout };
	if (n < 0)
		return error_errno(err, n, "cannot list the CPUs of the ring buffer");
	ring->cpus = calloc((size_t)n, sizeof(*ring->cpus));
	if (!ring->cpus)
		return error_set(err, -ENOMEM, "out of memory");
	ring->cpu_count = (unsigned)n;
	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++)
		ring->cpus[cpu].reader = (struct cpu_reader){ .cpu = cpu, .fd = -EBADF };
	ring_open_online(ring, sys);
	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++) {
		if (!ring->cpus[cpu].online || (wanted && !cpu_set_has(wanted, cpu)))
			continue;
		r = ring_open_reader(ring, cpu, s);
		if (r == -ENOENT)
			continue;
		if (r == 0)
			continue;
		error_errno(err, r, "cannot read the ring buffer of CPU %u by %s", cpu,
			    kind ? cpu_reader_kind_name(kind) : "any means");
		return r == -EOPNOTSUPP ? feature_hint(err, FEATURE_PART, "mapped rings", NULL) : r;
	}
	return 0;
}

void ring_close(struct ring *ring)
{
	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++)
		cpu_reader_close(&ring->cpus[cpu].reader);
	free(ring->cpus);
	ring->cpus = NULL;
	ring->cpu_count = 0;
	ring->dir = close_fd(ring->dir);
	ring->switch_fd = close_fd(ring->switch_fd);
	ring->online_fd = close_fd(ring->online_fd);
}

int ring_open_switch(struct ring *ring)
{
	int fd = tracefs_open_file(ring->dir, O_RDWR, "tracing_on");

	ring->switch_fd = fd < 0 ? -EBADF : fd;
	return MIN(fd, 0);
}

int ring_switch(const struct ring *ring, bool on)
{
	return pwrite(ring->switch_fd, on ? "1" : "0", 1, 0) < 0 ? -errno : 0;
}

int ring_is_on(const struct ring *ring)
{
	char on;

	return pread(ring->switch_fd, &on, 1, 0) < 1 ? -errno : on != '0';
}

static bool ring_lacks(const struct ring *ring, unsigned cpu)
{
	return ring->cpus[cpu].reader.fd < 0 && (!ring->wanted || cpu_set_has(ring->wanted, cpu));
}

bool ring_refresh(struct ring *ring, const struct staging *s)
{
	bool lacking = false;

	for (unsigned cpu = 0; cpu < ring->cpu_count && !lacking; cpu++)
		lacking = ring_lacks(ring, cpu);
	if (!lacking)
		return false;
	ring_read_online(ring);
	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++)
		/* If it fails (not ready yet, or no memory), the next tick tries again. */
		if (ring->cpus[cpu].online && ring_lacks(ring, cpu))
			ring_open_reader(ring, cpu, s);
	return true;
}

int ring_watch(struct ring *ring, int epfd)
{
	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++) {
		struct cpu_reader *r = &ring->cpus[cpu].reader;
		struct epoll_event ev = { .events = EPOLLIN,
					  .data.u64 = (uint64_t)ring->buffer << 32 | cpu };

		if (r->fd < 0 || r->watched || r->idle_wakeups >= IDLE_WAKEUPS_MAX)
			continue;
		/* A fixture's regular file cannot be polled: the tick reads it. */
		if (epoll_ctl(epfd, EPOLL_CTL_ADD, r->fd, &ev) < 0 && errno != EPERM)
			return -errno;
		r->watched = true;
	}
	return 0;
}

static int ring_write_batch(struct ring *ring, unsigned cpu, struct stream_writer *w,
			    const struct batch *b)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)b->data,
			     .iov_len = (size_t)b->subbufs * ring->layout.size };

	ring->subbufs += b->subbufs;
	if (ring->seen)
		seen_events_look(ring->seen, &ring->layout, b->data, b->subbufs);
	return stream_write_subbufs(w, cpu, ring->buffer, b->skip, &iov, 1);
}

/* Temporary errors: the CPU goes offline, or memory is short. */
static bool ring_error_is_temporary(int code)
{
	return code == -EAGAIN || code == -EBUSY || code == -ENOMEM || code == -ENODEV ||
	       code == -EINTR;
}

int ring_drain_cpu(struct ring *ring, unsigned cpu, struct staging *s, struct stream_writer *w,
		   unsigned *budget, enum take take)
{
	struct cpu_reader *r = &ring->cpus[cpu].reader;
	struct batch b;

	r->hot = r->refused = false;
	if (r->fd < 0 || ring->unread)
		return 0;
	while (*budget) {
		int code = cpu_reader_take(r, s, *budget, take, &b);

		if (ring_error_is_temporary(code)) {
			r->refused = true;
			return 0;
		}
		if (code < 0)
			return code;
		if (b.subbufs) {
			code = ring_write_batch(ring, cpu, w, &b);
			if (code < 0)
				return code;
			*budget -= MIN(*budget, b.subbufs);
		}
		if (!b.more)
			return 0;
	}
	r->hot = true;
	return 1;
}

int ring_flush(struct ring *ring, struct staging *s, struct stream_writer *w)
{
	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++) {
		unsigned budget = UINT32_MAX;
		int r = ring_drain_cpu(ring, cpu, s, w, &budget, TAKE_ALL);

		if (r < 0)
			return r;
	}
	return 0;
}

uint64_t ring_most_subbufs(const struct ring *ring, unsigned cpu)
{
	/* Each sub-buffer is at least half full, except the reader's and the writer's. */
	return ring->cpus[cpu].counts.bytes / (ring->layout.size / 2) + 3;
}

int ring_flush_bounded(struct ring *ring, struct staging *s, struct stream_writer *w)
{
	int r = ring_count(ring);

	for (unsigned cpu = 0; r == 0 && cpu < ring->cpu_count; cpu++) {
		uint64_t most = ring_most_subbufs(ring, cpu);
		unsigned budget = (unsigned)MIN(most, (uint64_t)UINT32_MAX);

		r = ring_drain_cpu(ring, cpu, s, w, &budget, TAKE_PRESENT);
		r = r > 0 ? 0 : r;
	}
	return r;
}
