/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/targets.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/search.h"
#include "base/vec.h"
#include "daemon/capture/tracefs/tracefs.h"

#define CHECK_NS (100 * NSEC_PER_MSEC)
/* A check may take this part of the time until the next one. */
#define CHECK_SHARE 100
/* Threads can start between a listing and the write of it. */
#define BEGIN_ROUNDS 16
/* Checks that fail one after the other before the recording has a warning. */
#define FAILURES_MAX 3

/* Sorted, each once. */
struct pid_list {
	pid_t *items; /* owned */
	size_t count, cap;
};

struct targets {
	char *proc;
	/* Open "task" folders: unlike a process id, they never mean another process later. */
	int folders[CAPTURE_PROCESSES_MAX];
	size_t count;
	pid_t *threads; /* requested by themselves; owned */
	size_t thread_count;
	struct pid_list listed; /* as targets_fill() found them */
	bool with_children, functions;
	bool prune;
	int dir; /* the buffer's; borrowed */
	uint64_t next;
	unsigned failures; /* of checks, since one succeeded */
};

static void pid_list_deinit(struct pid_list *l)
{
	free(l->items);
	*l = (struct pid_list){ 0 };
}
#define _cleanup_pid_list_ _cleanup_(pid_list_deinit)

static int pid_list_compare(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static void pid_list_sort(struct pid_list *l)
{
	size_t kept = 0;

	if (l->count)
		qsort(l->items, l->count, sizeof(*l->items), pid_list_compare);
	for (size_t i = 0; i < l->count; i++)
		if (!kept || l->items[i] != l->items[kept - 1])
			l->items[kept++] = l->items[i];
	l->count = kept;
}

static bool pid_list_has(const struct pid_list *l, pid_t pid)
{
	size_t at = lower_bound(i, l->count, l->items[i] < pid);

	return at < l->count && l->items[at] == pid;
}

static bool targets_number(const char *text, char **ret_end, pid_t *ret)
{
	unsigned long number = strtoul(text, ret_end, 10);

	if (*text < '0' || *text > '9' || !number || number > INT_MAX)
		return false;
	*ret = (pid_t)number;
	return true;
}

struct targets *targets_free(struct targets *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < t->count; i++)
		close_fd(t->folders[i]);
	pid_list_deinit(&t->listed);
	free(t->threads);
	free(t->proc);
	free(t);
	return NULL;
}

static int targets_open(struct targets *t, pid_t pid, struct error *err)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%d/task", t->proc, (int)pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		error_set(err, -ESRCH, "there is no process %d", (int)pid);
		return error_hint(err, "pgrep NAME shows process ids");
	}
	if (fd < 0)
		return error_errno(err, -errno, "%s", path);
	t->folders[t->count++] = fd;
	return 0;
}

int targets_new(struct targets **ret, const char *proc, const struct capture_request *request,
		struct error *err)
{
	_cleanup_(targets_freep) struct targets *t = NULL;
	size_t threads = request->pid_count;

	*ret = NULL;
	if (!request->process_count)
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return error_errno(err, -ENOMEM, "the processes");
	t->proc = strdup(proc);
	t->threads = calloc(threads + 1, sizeof(*t->threads));
	if (!t->proc || !t->threads)
		return error_errno(err, -ENOMEM, "the processes");
	if (threads)
		memcpy(t->threads, request->pids, threads * sizeof(*t->threads));
	t->thread_count = threads;
	t->with_children = request->follow_forks;
	t->functions = request->functions.tracer;
	t->dir = -EBADF;
	t->next = UINT64_MAX;
	for (size_t i = 0; i < request->process_count; i++) {
		int r = targets_open(t, request->processes[i], err);

		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(t);
	return 0;
}

/* A process that has ended has no threads. */
static int targets_list_process(int folder, struct pid_list *out)
{
	DIR *dir = folder_at(folder, ".");
	const struct dirent *entry;
	char *end;
	pid_t pid;
	int r = 0;

	if (!dir)
		return 0;
	while (r == 0 && (entry = readdir(dir)))
		if (targets_number(entry->d_name, &end, &pid) && !*end)
			r = vec_push(out->items, out->count, out->cap, pid);
	closedir(dir);
	return r;
}

static int targets_list(const struct targets *t, struct pid_list *out)
{
	int r = 0;

	for (size_t i = 0; i < t->count && r == 0; i++)
		r = targets_list_process(t->folders[i], out);
	for (size_t i = 0; i < t->thread_count && r == 0; i++)
		r = vec_push(out->items, out->count, out->cap, t->threads[i]);
	pid_list_sort(out);
	return r;
}

int targets_fill(struct targets *t, struct capture_request *request, struct error *err)
{
	int r = t ? targets_list(t, &t->listed) : 0;

	if (r < 0)
		return error_errno(err, r, "the processes' threads");
	if (!t)
		return 0;
	if (!t->listed.count)
		return error_set(err, -ESRCH, "all these processes have ended");
	request->pids = t->listed.items;
	request->pid_count = t->listed.count;
	request->follow_forks = true;
	return 0;
}

/* Appends the tasks that the kernel's file names. */
static int targets_read(const struct targets *t, const char *file, struct pid_list *out)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = tracefs_read(t->dir, file, &text);
	char *at;
	pid_t pid;

	if (r == 0 && !buf_string(&text))
		r = -ENOMEM;
	for (at = text.data; r == 0 && *at; at += strspn(at, " \n"))
		r = targets_number(at, &at, &pid) ? vec_push(out->items, out->count, out->cap, pid)
						  : -EBADMSG;
	pid_list_sort(out);
	return r;
}

static int targets_write(const struct targets *t, const char *file, const char *function_file,
			 const struct pid_list *pids)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r;

	for (size_t i = 0; i < pids->count; i++)
		buf_printf(&text, "%d ", (int)pids->items[i]);
	buf_puts(&text, "\n");
	if (!buf_string(&text))
		return -ENOMEM;
	r = tracefs_append(t->dir, file, text.data);
	if (r == 0 && t->functions)
		r = tracefs_append(t->dir, function_file, text.data);
	return r;
}

/* True if the thread is of one of the processes. */
static bool targets_own_now(const struct targets *t, pid_t pid)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", (int)pid);
	for (size_t i = 0; i < t->count; i++)
		if (faccessat(t->folders[i], name, F_OK, 0) == 0)
			return true;
	return false;
}

static bool targets_is_alive(const struct targets *t, pid_t pid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d", t->proc, (int)pid);
	return access(path, F_OK) == 0;
}

/* Adds our threads that the kernel's list has not. Returns how many. */
static int targets_add_missing(struct targets *t, const struct pid_list *listed,
			       const struct pid_list *kernel)
{
	_cleanup_pid_list_ struct pid_list missing = { 0 };
	int r = 0;

	for (size_t i = 0; i < listed->count && r == 0; i++)
		/* One that has ended would stay in the list, and mean another task later. */
		if (!pid_list_has(kernel, listed->items[i]) && targets_own_now(t, listed->items[i]))
			r = vec_push(missing.items, missing.count, missing.cap, listed->items[i]);
	if (r == 0 && missing.count)
		r = targets_write(t, "set_event_pid", "set_ftrace_pid", &missing);
	return r < 0 ? r : (int)missing.count;
}

static int targets_leave_out(struct targets *t, const struct pid_list *listed,
			     const struct pid_list *kernel)
{
	_cleanup_pid_list_ struct pid_list left_out = { 0 }, children = { 0 };
	int r = targets_read(t, "set_event_notrace_pid", &left_out);

	for (size_t i = 0; i < kernel->count && r == 0; i++) {
		pid_t pid = kernel->items[i];

		if (!pid_list_has(listed, pid) && !pid_list_has(&left_out, pid) &&
		    !targets_own_now(t, pid) && targets_is_alive(t, pid))
			r = vec_push(children.items, children.count, children.cap, pid);
	}
	if (r == 0 && children.count)
		r = targets_write(t, "set_event_notrace_pid", "set_ftrace_notrace_pid", &children);
	return r;
}

/* Returns how many threads were missing in the kernel's list, or -errno. */
static int targets_update(struct targets *t)
{
	_cleanup_pid_list_ struct pid_list listed = { 0 }, kernel = { 0 };
	int r = targets_list(t, &listed), missing;

	if (r == 0)
		r = targets_read(t, "set_event_pid", &kernel);
	if (r < 0)
		return r;
	missing = targets_add_missing(t, &listed, &kernel);
	if (missing >= 0 && t->prune)
		r = targets_leave_out(t, &listed, &kernel);
	return r < 0 ? r : missing;
}

static bool targets_can_prune(const struct targets *t, bool top_level)
{
	return !top_level && faccessat(t->dir, "set_event_notrace_pid", F_OK, 0) == 0 &&
	       (!t->functions || faccessat(t->dir, "set_ftrace_notrace_pid", F_OK, 0) == 0);
}

int targets_begin(struct targets *t, int dir, bool top_level, struct capture_report *report,
		  struct error *err)
{
	int r = 1;

	if (!t)
		return 0;
	t->dir = dir;
	t->prune = !t->with_children && targets_can_prune(t, top_level);
	if (!t->with_children && !t->prune)
		report_warn(report,
			    "%s cannot leave out the processes that a recorded one "
			    "starts: they are recorded, too",
			    top_level ? "--top-level" : "this kernel");
	for (int i = 0; i < BEGIN_ROUNDS && r > 0; i++)
		r = targets_update(t);
	t->next = t->with_children ? UINT64_MAX : now_ns(CLOCK_BOOTTIME) + CHECK_NS;
	return r < 0 ? error_errno(err, r, "cannot limit the recording to the processes") : 0;
}

uint64_t targets_deadline(const struct targets *t)
{
	return t ? t->next : UINT64_MAX;
}

/* After a failure the next check tries again. */
static void targets_note(struct targets *t, int r, struct capture_report *report)
{
	t->failures = r < 0 ? t->failures + 1 : 0;
	if (t->failures == FAILURES_MAX)
		report_warn(report,
			    "cannot check the threads of the recorded processes: %s; new threads "
			    "may be missing, and processes that a recorded one starts may be "
			    "recorded, too",
			    strerror(-r));
}

void targets_check(struct targets *t, uint64_t now, struct capture_report *report)
{
	uint64_t took;

	if (now < targets_deadline(t))
		return;
	targets_note(t, targets_update(t), report);
	took = now_ns(CLOCK_BOOTTIME) - now;
	t->next = now + took + MAX(CHECK_NS, took * CHECK_SHARE);
}
