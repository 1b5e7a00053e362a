/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/stall.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"

#define TICK_US (2 * USEC_PER_SEC)
#define TICK_LATE_US (USEC_PER_SEC / 2)
/* A slow disk keeps writers waiting as well, but not this long. */
#define HANGS_NS (10 * NSEC_PER_SEC)
#define PROC_FILE_MAX 4096

struct stall {
	struct child *child;
	struct loop_source *timer;
	int fd;
	uint64_t position; /* of the output, as last seen */
	uint64_t since_ns; /* the exporter has waited at each look; 0: not at the last one */
	bool hangs;
	stall_call_t call;
	void *userdata;
};

/* lseek() would wait for the exporter's write. */
static uint64_t stall_position(int fd)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (read_file_at(AT_FDCWD, path, PROC_FILE_MAX, &text) < 0 || !buf_string(&text) ||
	    strncmp(text.data, "pos:", 4) != 0)
		return 0;
	return strtoull(text.data + 4, NULL, 10);
}

static bool thread_waits(int dir, const char *tid)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[64];
	const char *end;

	snprintf(path, sizeof(path), "%.20s/stat", tid);
	if (read_file_at(dir, path, PROC_FILE_MAX, &text) < 0 || !buf_string(&text))
		return false;
	end = strrchr(text.data, ')');
	return end && strncmp(end, ") D", 3) == 0;
}

/* True if one of its threads waits in the kernel, where no signal ends it. */
static bool process_waits(pid_t pid)
{
	const struct dirent *e;
	bool waits = false;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = pid > 0 ? opendir(path) : NULL;
	while (dir && !waits && (e = readdir(dir)))
		waits = *e->d_name != '.' && thread_waits(dirfd(dir), e->d_name);
	if (dir)
		closedir(dir);
	return waits;
}

static void stall_on_tick(void *userdata)
{
	struct stall *s = userdata;
	uint64_t now = now_ns(CLOCK_MONOTONIC), position = stall_position(s->fd), waited;
	bool waits = process_waits(child_pid(s->child)) && position == s->position, hangs;

	loop_timer_in(s->timer, TICK_US);
	s->position = position;
	waited = s->since_ns ? now - s->since_ns : 0;
	if (!waits)
		s->since_ns = 0;
	else if (!s->since_ns)
		s->since_ns = now;
	hangs = waits && waited >= HANGS_NS;
	if (hangs == s->hangs)
		return;
	s->hangs = hangs;
	s->call(s->userdata, hangs, waited);
}

int stall_new(struct stall **ret, struct loop *loop, struct child *child, int fd, stall_call_t call,
	      void *userdata)
{
	struct stall *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->child = child;
	s->fd = fd;
	s->call = call;
	s->userdata = userdata;
	r = loop_add_timer(loop, &s->timer, CLOCK_MONOTONIC, TICK_LATE_US, stall_on_tick, s);
	if (r < 0) {
		free(s);
		return r;
	}
	loop_timer_in(s->timer, TICK_US);
	*ret = s;
	return 0;
}

struct stall *stall_free(struct stall *s)
{
	if (!s)
		return NULL;
	loop_source_free(s->timer);
	free(s);
	return NULL;
}

bool stall_hangs(const struct stall *s)
{
	return s && s->hangs;
}
