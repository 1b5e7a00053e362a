/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes marks into the kernel's ring, including those that tie clocks. */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/vec.h"
#include "daemon/capture/recording.h"

#define CPUS_MAX 8192 /* maximum of CONFIG_NR_CPUS */

static int marker_write_between(int fd, const char *text, struct clock_sync_mark *ret)
{
	int r;

	if (fd < 0)
		return fd;
	ret->before = now_ns(CLOCK_BOOTTIME);
	r = write_full(fd, text, strlen(text));
	ret->after = now_ns(CLOCK_BOOTTIME);
	return r;
}

/*
 * CPUs outside tracing_cpumask refuse writes to trace_marker (EBADF). For the write the thread
 * moves to a CPU inside the mask.
 */
static int marker_write(const struct capture_run *run, const struct cpu_set *cpus, const char *text,
			struct clock_sync_mark *ret)
{
	cpu_set_t before[CPUS_MAX / CPU_SETSIZE], allowed[CPUS_MAX / CPU_SETSIZE];
	int r;

	if (!cpus->bits)
		return marker_write_between(run->marker, text, ret);
	CPU_ZERO_S(sizeof(allowed), allowed);
	for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++)
		if (cpu_set_has(cpus, cpu))
			CPU_SET_S(cpu, sizeof(allowed), allowed);
	if (sched_getaffinity(0, sizeof(before), before) < 0 ||
	    sched_setaffinity(0, sizeof(allowed), allowed) < 0)
		return -errno;
	r = marker_write_between(run->marker, text, ret);
	sched_setaffinity(0, sizeof(before), before);
	return r;
}

int capture_start_counting(struct capture *c)
{
	struct clock_sync_mark unused;

	return marker_write(&c->run, &c->setup.cpus, "traced: histograms begin", &unused);
}

/*
 * A mark in the ring has the address of the kernel's code that wrote it. Whoever may not see such
 * addresses may have a recording of histograms alone as it is.
 */
static int marker_check(const struct capture *c, struct error *err)
{
	if (!c->run.running)
		return error_set(err, -ENODATA, "the recording is not running");
	if (!c->setup.counts_only)
		return 0;
	error_set(err, -EOPNOTSUPP, "a recording of histograms alone takes no marks");
	return error_hint(err, "record an event, too");
}

int capture_mark(struct capture *c, const char *text, struct error *err)
{
	struct clock_sync_mark unused;
	int r;

	if (strlen(text) > CAPTURE_MARK_MAX)
		return error_set(err, -EMSGSIZE, "a mark holds at most %d bytes", CAPTURE_MARK_MAX);
	r = marker_check(c, err);
	if (r < 0)
		return r;
	r = marker_write(&c->run, &c->setup.cpus, text, &unused);
	return r < 0 ? error_errno(err, r, "cannot write the mark") : 0;
}

/* Tries each CPU, because those outside tracing_cpumask refuse. */
static int marker_write_anywhere(int fd, const char *text)
{
	cpu_set_t before[CPUS_MAX / CPU_SETSIZE], one[CPUS_MAX / CPU_SETSIZE];
	struct clock_sync_mark unused;
	int r = marker_write_between(fd, text, &unused);

	if (r != -EBADF || sched_getaffinity(0, sizeof(before), before) < 0)
		return r;
	for (unsigned cpu = 0; cpu < CPUS_MAX && r == -EBADF; cpu++) {
		if (!CPU_ISSET_S(cpu, sizeof(before), before))
			continue;
		CPU_ZERO_S(sizeof(one), one);
		CPU_SET_S(cpu, sizeof(one), one);
		if (sched_setaffinity(0, sizeof(one), one) == 0)
			r = marker_write_between(fd, text, &unused);
	}
	sched_setaffinity(0, sizeof(before), before);
	return r;
}

int capture_mark_other(const struct tracefs *fs, const char *instance, const char *text,
		       struct error *err)
{
	_cleanup_close_ int dir = tracefs_open_instance(fs, instance), fd = -EBADF;
	int r;

	if (strlen(text) > CAPTURE_MARK_MAX)
		return error_set(err, -EMSGSIZE, "a mark holds at most %d bytes", CAPTURE_MARK_MAX);
	fd = dir < 0 ? dir : tracefs_open_file(dir, O_WRONLY, "trace_marker");
	if (fd < 0)
		return error_errno(err, fd, "cannot open trace_marker of %s", instance);
	r = marker_write_anywhere(fd, text);
	if (r == -EBADF)
		return error_set(err, -ENODATA, "%s does not record", instance);
	return r < 0 ? error_errno(err, r, "cannot write a mark into %s", instance) : 0;
}

static int write_sync(const struct sync *s, struct stream_writer *w)
{
	struct clock_snapshot snapshot = s->clocks;

	snapshot.sync = &s->mark;
	return clocks_write(&snapshot, w, CLOCK_PHASE_SYNC);
}

int run_write_syncs(struct capture_run *run)
{
	int r = 0;

	for (; r == 0 && run->syncs_written < run->sync_count; run->syncs_written++)
		r = write_sync(&run->syncs[run->syncs_written], &run->writer);
	return r;
}

/* Only the ring gets the mark: run_write_syncs() writes the readings. */
static int sync_make(struct capture_run *run, const struct cpu_set *cpus, const char *id,
		     struct sync **ret)
{
	struct sync *s;
	char text[sizeof("trace_event_clock_sync: name=") + CAPTURE_SYNC_ID_MAX];
	int r;

	if (vec_reserve_exact(run->syncs, run->sync_count, 1) < 0)
		return -ENOMEM;
	s = &run->syncs[run->sync_count];
	*s = (struct sync){ .mark.id = strdup(id) };
	if (!s->mark.id)
		return -ENOMEM;
	snprintf(text, sizeof(text), "trace_event_clock_sync: name=%s", id);
	r = marker_write(run, cpus, text, &s->mark);
	if (r < 0) {
		free(s->mark.id);
		return r;
	}
	clocks_read(&s->clocks);
	run->sync_count++;
	*ret = s;
	return 0;
}

void capture_sync_start(struct capture *c)
{
	const uint8_t *uuid = c->setup.uuid;
	char id[sizeof("traced_") + 8];
	struct sync *unused;
	int r;

	snprintf(id, sizeof(id), "traced_%02x%02x%02x%02x", uuid[0], uuid[1], uuid[2], uuid[3]);
	r = sync_make(&c->run, &c->setup.cpus, id, &unused);
	if (r < 0)
		report_warn(&c->report, "the clock marker could not be written: %s", strerror(-r));
}

static bool sync_id_is_valid(const char *id)
{
	size_t n = strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_");

	return n && !id[n] && n <= CAPTURE_SYNC_ID_MAX;
}

int capture_sync(struct capture *c, const char *id, struct capture_sync *ret, struct error *err)
{
	struct sync *s;
	int r;

	if (!sync_id_is_valid(id))
		return error_set(err, -EINVAL,
				 "a sync's id has from 1 to %d letters, digits, - and _",
				 CAPTURE_SYNC_ID_MAX);
	r = marker_check(c, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < c->run.sync_count; i++)
		if (strcmp(c->run.syncs[i].mark.id, id) == 0)
			return error_set(err, -EEXIST, "the recording has the sync \"%s\" already",
					 id);
	if (c->run.sync_count >= CAPTURE_SYNCS_MAX)
		return error_set(err, -ENOSPC, "a recording takes at most %d syncs",
				 CAPTURE_SYNCS_MAX);
	r = sync_make(&c->run, &c->setup.cpus, id, &s);
	if (r == 0 && c->run.streaming)
		r = c->run.full ? -EDQUOT : run_write_syncs(&c->run);
	c->run.full |= r == -EDQUOT;
	if (r < 0)
		return error_errno(err, r, "cannot write the mark");
	*ret = (struct capture_sync){ .before_ns = s->mark.before, .after_ns = s->mark.after };
	return 0;
}

void run_forget_syncs(struct capture_run *run)
{
	for (size_t i = 0; i < run->sync_count; i++)
		free(run->syncs[i].mark.id);
	free(run->syncs);
}
