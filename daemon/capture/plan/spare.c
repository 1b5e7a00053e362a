/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/spare.h"

#include <fcntl.h>

#include "base/io.h"
#include "daemon/capture/plan/setup.h"
#include "daemon/capture/rings/ring.h"

struct capture_spare {
	struct capture_env env;
	struct plan plan;
	struct journal journal;
	char instance[INSTANCE_NAME_MAX], tasks[INSTANCE_NAME_MAX];
	bool has_tasks;
	uint64_t bytes;
	struct buf state; /* as spare_read_state() found it after creation */
};

/* Session names cannot contain '+'. */
#define SPARE_NAME CAPTURE_INSTANCE_PREFIX "%d-spare+%u"

/*
 * Reads what one read(2) gives. A spare's files are short. To tell their end the kernel would
 * compute the text again, for events/enable from all events.
 */
static int spare_read_file(int dir, const char *path, char *to, size_t size)
{
	_cleanup_close_ int fd = tracefs_open_file(dir, O_RDONLY, "%s", path);
	ssize_t n = fd < 0 ? fd : read(fd, to, size - 1);

	to[MAX(n, 0)] = '\0';
	return n < 0 ? (fd < 0 ? fd : -errno) : 0;
}

/* Events already in the rings would be taken for the recording's. */
static void spare_read_rings(int dir, struct buf *out)
{
	const long cpus = sysconf(_SC_NPROCESSORS_CONF); /* read once: sysconf reads a file */

	for (long cpu = 0; cpu < cpus; cpu++) {
		struct cpu_counts counts = { 0 };
		char path[64], text[1024];

		snprintf(path, sizeof(path), "per_cpu/cpu%ld/stats", cpu);
		if (spare_read_file(dir, path, text, sizeof(text)) == 0)
			cpu_counts_parse(&counts, text);
		buf_printf(out, "%llu ", (unsigned long long)(counts.entries + counts.overrun));
	}
}

static int spare_read_instance(const struct tracefs *fs, const char *instance, struct buf *out)
{
	static const char *const files[] = {
		"tracing_on",	  "current_tracer", "trace_clock",	     "trace_options",
		"buffer_size_kb", "buffer_percent", "buffer_subbuf_size_kb", "tracing_cpumask",
		"events/enable",  "set_event_pid",  "set_event_notrace_pid",
	};
	_cleanup_close_ int dir = tracefs_open_instance(fs, instance);

	if (dir < 0)
		return dir;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		/* A kernel may lack some files: the error is part of the state. */
		char text[4096];
		int r = spare_read_file(dir, files[i], text, sizeof(text));

		buf_printf(out, "%s\n%d ", text, r);
	}
	spare_read_rings(dir, out);
	return 0;
}

/* Collects state that shows whether somebody used the instance, or CPUs came or went. */
static int spare_read_state(const struct capture_spare *s, struct buf *out)
{
	char path[256];
	int r = spare_read_instance(s->env.tracefs, s->instance, out);

	if (r == 0 && s->has_tasks)
		r = spare_read_instance(s->env.tracefs, s->tasks, out);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/devices/system/cpu/online", capture_env_sys(&s->env));
	read_file_at(AT_FDCWD, path, 4096, out);
	return buf_error(out);
}

static uint64_t spare_ring_bytes(const struct tracefs *fs, const char *instance)
{
	_cleanup_close_ int dir = tracefs_open_instance(fs, instance);
	uint64_t kib;

	return dir >= 0 && tracefs_read_u64(dir, "buffer_total_size_kb", &kib) == 0 ? kib << 10 : 0;
}

static int spare_make(struct capture_spare *s, const struct capture_request *request,
		      struct error *err)
{
	struct tracefs *fs = s->env.tracefs;
	const char *tasks = s->has_tasks ? s->tasks : NULL;
	int r = request_plan_buffers(&s->plan, &s->env, request, s->instance, tasks, err);

	if (r == 0)
		r = journal_create(&s->journal, s->env.state_dir, s->instance, err);
	if (r == 0)
		r = plan_apply(&s->plan, fs, &s->journal, err);
	if (r < 0)
		return r;
	r = spare_read_state(s, &s->state);
	if (r < 0)
		return error_errno(err, r, "cannot read the tracefs instance %s", s->instance);
	s->bytes = spare_ring_bytes(fs, s->instance) + (tasks ? spare_ring_bytes(fs, tasks) : 0);
	return 0;
}

int capture_spare_new(struct capture_spare **ret, const struct capture_env *env, unsigned number,
		      const struct capture_request *request, struct error *err)
{
	_cleanup_(capture_spare_freep) struct capture_spare *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_set(err, -ENOMEM, "out of memory");
	s->env = *env;
	s->journal = JOURNAL_INIT;
	s->has_tasks = tracefs_has_event(env->tracefs, "task/task_newtask");
	snprintf(s->instance, sizeof(s->instance), SPARE_NAME, getpid(), number);
	snprintf(s->tasks, sizeof(s->tasks), SPARE_NAME "-tasks", getpid(), number);
	r = spare_make(s, request, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

struct capture_spare *capture_spare_free(struct capture_spare *s)
{
	if (!s)
		return NULL;
	plan_end(&s->plan, s->env.tracefs, &s->journal);
	buf_deinit(&s->state);
	free(s);
	return NULL;
}

uint64_t capture_spare_bytes(const struct capture_spare *s)
{
	return s->bytes;
}

bool capture_spare_take(struct capture_spare *s, struct capture_setup *to)
{
	_cleanup_(capture_spare_freep) _unused_ struct capture_spare *spare = s;
	_cleanup_buf_ struct buf state = BUF_INIT;

	if (spare_read_state(s, &state) < 0 || state.len != s->state.len ||
	    memcmp(state.data, s->state.data, state.len) != 0)
		return false;
	to->plan = s->plan;
	s->plan = (struct plan){ 0 };
	to->journal = s->journal;
	s->journal = JOURNAL_INIT;
	memcpy(to->instance, s->instance, sizeof(to->instance));
	memcpy(to->tasks, s->tasks, sizeof(to->tasks));
	return true;
}
