/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/boot_ring.h"

#include <fcntl.h>
#include <string.h>

#include "base/event_glob.h"
#include "daemon/capture/last_boot.h"
#include "daemon/capture/rings/ring.h"

/* Returns the directory's descriptor. */
static int boot_ring_open(const struct capture_env *env, const char *instance, struct error *err)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	_cleanup_buf_ struct buf info = BUF_INIT;
	int dir = tracefs_open_instance(env->tracefs, instance), r;

	if (dir == -ENOENT) {
		error_set(err, -ENOENT, "the kernel made no instance '%s' at its start", instance);
		return error_hint(err, "see 'tracectl boot-recorder enable' for its command line; "
				       "it takes effect at the next start");
	}
	if (dir < 0)
		return error_errno(err, dir, "cannot open the instance '%s'", instance);
	r = last_boot_read_info(dir, instance, &info, &why);
	if (r == 0 || r == -ENODATA)
		return dir;
	close(dir);
	return error_move(err, &why);
}

static int boot_ring_set(int dir, const char *file, const char *value, struct error *err)
{
	int r = tracefs_write(dir, file, value);

	return r < 0 ? error_errno(err, r, "cannot write '%s' to %s", value, file) : 0;
}

/* All steps are tried. */
static int boot_ring_clear(int dir, struct error *err)
{
	static const char *const steps[][2] = {
		{ "tracing_on", "0" },
		{ "current_tracer", "nop" },
		{ "events/enable", "0" },
		{ "trace", "" },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		int e = boot_ring_set(dir, steps[i][0], steps[i][1], r < 0 ? NULL : err);

		r = r < 0 ? r : e;
	}
	return r;
}

/* event: "system:name" */
static int boot_ring_enable_event(int dir, const char *event, struct error *err)
{
	const char *colon = strchr(event, ':');
	char path[512];

	if (!colon || (size_t)snprintf(path, sizeof(path), "events/%.*s/%s/enable",
				       (int)(colon - event), event, colon + 1) >= sizeof(path))
		return 0;
	return boot_ring_set(dir, path, "1", err);
}

static bool event_matches(const char *glob, const char *event)
{
	const char *colon = strchr(event, ':');
	char system[256];

	if (!colon || (size_t)(colon - event) >= sizeof(system))
		return false;
	memcpy(system, event, (size_t)(colon - event));
	system[colon - event] = '\0';
	return event_glob_has(glob, system, colon + 1);
}

/* A negative dir only looks. */
static int boot_ring_enable(const struct capture_env *env, int dir, const char *glob,
			    struct buf *missing, struct error *err)
{
	const char *const *events;
	size_t count, found = 0;
	int r = tracefs_events(env->tracefs, &events, &count, err);

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (!event_matches(glob, events[i]))
			continue;
		found++;
		r = dir < 0 ? 0 : boot_ring_enable_event(dir, events[i], err);
	}
	if (r == 0 && !found)
		buf_printf(missing, " %s", glob);
	return r;
}

int boot_ring_arm(const struct capture_env *env, const struct boot_ring *ring, struct buf *missing,
		  struct error *err)
{
	_cleanup_close_ int dir = boot_ring_open(env, ring->instance, err);
	int r;

	if (dir < 0)
		return dir;
	r = boot_ring_clear(dir, err);
	for (size_t i = 0; r == 0 && i < ring->events.count; i++)
		r = boot_ring_enable(env, dir, ring->events.items[i], missing, err);
	if (r == 0 && ring->tracer)
		r = boot_ring_set(dir, "current_tracer", ring->tracer, err);
	if (r == 0)
		r = boot_ring_set(dir, "tracing_on", "1", err);
	if (r < 0)
		boot_ring_clear(dir, NULL);
	return r;
}

int boot_ring_find_missing(const struct capture_env *env, const struct boot_ring *ring,
			   struct buf *missing, struct error *err)
{
	_cleanup_buf_ struct buf tracers = BUF_INIT;
	char *save = NULL, *p;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ring->events.count; i++)
		r = boot_ring_enable(env, -EBADF, ring->events.items[i], missing, err);
	if (r < 0 || !ring->tracer)
		return r;
	r = tracefs_list(env->tracefs, TRACEFS_TRACERS, &tracers);
	if (r < 0 || !buf_string(&tracers))
		return error_errno(err, r < 0 ? r : -ENOMEM, "available_tracers");
	for (p = strtok_r(tracers.data, " ", &save); p && strcmp(p, ring->tracer) != 0;
	     p = strtok_r(NULL, " ", &save))
		;
	if (!p)
		buf_printf(missing, " %s", ring->tracer);
	return 0;
}

int boot_ring_disarm(const struct capture_env *env, const char *instance, struct error *err)
{
	_cleanup_close_ int dir = boot_ring_open(env, instance, err);

	return dir < 0 ? dir : boot_ring_clear(dir, err);
}

static uint64_t boot_ring_count(int dir)
{
	_cleanup_close_ int cpus = tracefs_open_file(dir, O_RDONLY | O_DIRECTORY, "per_cpu");
	uint64_t n = 0;

	for (unsigned cpu = 0; cpus >= 0; cpu++) {
		_cleanup_buf_ struct buf text = BUF_INIT;
		struct cpu_counts counts;
		char path[64];

		snprintf(path, sizeof(path), "cpu%u/stats", cpu);
		if (tracefs_read(cpus, path, &text) < 0 || !buf_string(&text))
			break;
		if (cpu_counts_parse(&counts, text.data) == 0)
			n += counts.entries;
	}
	return n;
}

int boot_ring_look(const struct capture_env *env, const char *instance, struct boot_ring_state *ret,
		   struct error *err)
{
	_cleanup_close_ int dir = boot_ring_open(env, instance, err);
	struct boot_ring_state s = { 0 };
	uint64_t on = 0, kb = 0;

	if (dir < 0)
		return dir;
	tracefs_read_u64(dir, "tracing_on", &on);
	tracefs_read_u64(dir, "buffer_total_size_kb", &kb);
	s.on = on;
	s.bytes = kb * 1024;
	s.events = boot_ring_count(dir);
	*ret = s;
	return 0;
}
