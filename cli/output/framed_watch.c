/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "output/framed_watch.h"

#include <stdio.h>
#include <unistd.h>

#include "base/io.h"
#include "base/thread.h"
#include "base/visible.h"

#define STACK_BYTES (64U << 10)
/* Each look is an event in the recording. */
#define LOOK_S 5
#define LOOK_WHILE_IT_HANGS_S 1
/* A slow disk takes this long to sync a large file. */
#define HANGS_S 10

struct watch {
	struct framed_report *report;
	const char *path;
};

static unsigned monotonic_s(void)
{
	/* 0 has a meaning. */
	return (unsigned)(now_ns(CLOCK_MONOTONIC) / NSEC_PER_SEC) + 1;
}

void framed_busy(struct framed_report *report, bool busy)
{
	atomic_store_explicit(&report->busy_since_s, busy ? monotonic_s() : 0,
			      memory_order_relaxed);
}

unsigned framed_busy_s(const struct framed_report *report)
{
	unsigned since = atomic_load_explicit(&report->busy_since_s, memory_order_relaxed);

	return since ? monotonic_s() - since : 0;
}

/* One write: lines of other processes do not come between. */
static void watch_say(const struct watch *w, bool hangs, unsigned s)
{
	_cleanup_buf_ struct buf line = BUF_INIT;

	/* A progress line may be there. */
	buf_puts(&line, isatty(STDERR_FILENO) ? "\r\033[Ktracectl: " : "tracectl: ");
	buf_visible(&line, w->path, VISIBLE_MAX);
	if (hangs)
		buf_printf(&line,
			   ": the output hangs: for %u s its file system has not answered\n"
			   "  hint: wait for it, or press Ctrl-C until the command ends\n",
			   s);
	else
		buf_printf(&line, ": the output takes data again, after %u s\n", s);
	if (buf_string(&line))
		(void)!write(STDERR_FILENO, line.data, line.len);
}

/* Whoever reads our standard error would otherwise wait for the file system, too. */
static void watch_leave(void)
{
	dup2(STDOUT_FILENO, STDERR_FILENO);
}

static void *watch_main(void *userdata)
{
	struct watch *w = userdata;
	unsigned hung_s = 0, s;

	for (;;) {
		sleep(hung_s ? LOOK_WHILE_IT_HANGS_S : LOOK_S);
		s = framed_busy_s(w->report);
		if (!hung_s && s >= HANGS_S)
			watch_say(w, true, s);
		if (hung_s && s < hung_s)
			watch_say(w, false, hung_s);
		hung_s = s >= HANGS_S ? s : 0;
		if (w->report->left)
			watch_leave();
	}
	return NULL;
}

void framed_watch(struct framed_report *report, const char *path)
{
	static struct watch watch; /* a process has one */
	pthread_t thread;

	watch.report = report;
	watch.path = path;
	if (thread_begin(&thread, STACK_BYTES, watch_main, &watch) == 0)
		pthread_detach(thread);
}
