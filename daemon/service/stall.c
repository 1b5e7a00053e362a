/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/stall.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"

#define TICK_US (2 * USEC_PER_SEC)
#define TICK_LATE_US (USEC_PER_SEC / 2)
/* A slow disk keeps writers waiting as well, but not this long. */
#define HANGS_NS (10 * NSEC_PER_SEC)
#define STATUS_MAX 16384

/* A thread that waits in the kernel, where no signal ends it. */
struct waiter {
	long tid; /* 0: none */
	uint64_t switches;
};

struct stall {
	struct child *child;
	struct loop_source *timer;
	struct waiter waiter; /* as last seen */
	uint64_t since_ns;    /* it has not run since then; 0: none */
	bool hangs;
	stall_call_t call;
	void *userdata;
};

static uint64_t status_number(const char *status, const char *key)
{
	const char *at = strstr(status, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/*
 * Nothing here looks at the output: lseek() would wait for the exporter's write, and what procfs
 * tells of a descriptor lists all the locks that its owner has set.
 */
static bool thread_waits(int dir, const char *tid, struct waiter *ret)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[64];

	snprintf(path, sizeof(path), "%.20s/status", tid);
	if (read_file_at(dir, path, STATUS_MAX, &text) < 0 || !buf_string(&text) ||
	    !strstr(text.data, "\nState:\tD"))
		return false;
	*ret = (struct waiter){
		.tid = strtol(tid, NULL, 10),
		.switches = status_number(text.data, "\nvoluntary_ctxt_switches:") +
			    status_number(text.data, "\nnonvoluntary_ctxt_switches:"),
	};
	return true;
}

/* The thread that was last seen, if it has not run since; or else any that waits. */
static struct waiter process_find_waiter(pid_t pid, const struct waiter *last)
{
	struct waiter found = { 0 }, w;
	const struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = pid > 0 ? opendir(path) : NULL;
	while (dir && (e = readdir(dir))) {
		if (*e->d_name == '.' || !thread_waits(dirfd(dir), e->d_name, &w))
			continue;
		if (!found.tid || (w.tid == last->tid && w.switches == last->switches))
			found = w;
	}
	if (dir)
		closedir(dir);
	return found;
}

static void stall_on_tick(void *userdata)
{
	struct stall *s = userdata;
	struct waiter now = process_find_waiter(child_pid(s->child), &s->waiter);
	bool same = now.tid && now.tid == s->waiter.tid && now.switches == s->waiter.switches;
	uint64_t now_at = now_ns(CLOCK_MONOTONIC), waited;
	bool hangs;

	loop_timer_in(s->timer, TICK_US);
	if (!same)
		s->since_ns = now.tid ? now_at : 0;
	s->waiter = now;
	waited = same ? now_at - s->since_ns : 0;
	hangs = waited >= HANGS_NS;
	if (hangs == s->hangs)
		return;
	s->hangs = hangs;
	s->call(s->userdata, hangs, waited);
}

int stall_new(struct stall **ret, struct loop *loop, struct child *child, stall_call_t call,
	      void *userdata)
{
	struct stall *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->child = child;
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
