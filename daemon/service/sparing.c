/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/sparing.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "base/log.h"
#include "daemon/capture/plan/spare.h"
#include "daemon/service/session.h"
#include "daemon/service/worker.h"

struct refresh {
	struct work work;
	struct sparing *sparing;
	/* Used by the worker until it is done. */
	struct capture_env env;
	bool wanted, asked_for, there;
	char *clock;
	uint64_t buffer_bytes, bytes;
	struct error err;
};

static bool sparing_is_as_wanted(const struct sparing *s, const struct refresh *r)
{
	return r->wanted && s->buffer_bytes == r->buffer_bytes && strcmp(s->clock, r->clock) == 0;
}

static void sparing_make(struct sparing *s, struct refresh *r)
{
	const struct capture_request request = { .clock = r->clock,
						 .buffer_bytes = r->buffer_bytes };

	if (capture_spare_new(&s->spare, &r->env, ++s->last_number, &request, &r->err) < 0)
		return;
	free(s->clock);
	s->clock = TAKE_PTR(r->clock);
	s->buffer_bytes = r->buffer_bytes;
}

static bool refresh_run(struct work *w)
{
	struct refresh *r = container_of(w, struct refresh, work);
	struct sparing *s = r->sparing;

	if (s->spare && !sparing_is_as_wanted(s, r))
		s->spare = capture_spare_free(s->spare);
	if (r->wanted && !s->spare)
		sparing_make(s, r);
	r->there = s->spare != NULL;
	r->bytes = r->there ? capture_spare_bytes(s->spare) : 0;
	return false;
}

/* A spare nobody asked for fails quietly: the next recording will report the cause. */
static void sparing_log_failure(bool asked_for, const struct error *err)
{
	static struct log_limit limit = LOG_LIMIT_INIT;

	if (log_limit_pass(&limit))
		log_write(asked_for ? LOG_WARNING : LOG_DEBUG, NULL,
			  "cannot prepare the next recording's instances: %s", err->message);
}

static void refresh_done(struct work *w)
{
	struct refresh *r = container_of(w, struct refresh, work);

	r->sparing->there = r->there;
	r->sparing->bytes = r->bytes;
	r->sparing->under_way--;
	if (r->err.code)
		sparing_log_failure(r->asked_for, &r->err);
	error_deinit(&r->err);
	free(r->clock);
	free(r);
}

/* Before Linux 6.6 each instance holds inodes for all events, megabytes of memory. */
static bool sparing_instances_are_small(void)
{
	struct utsname u;
	unsigned major, minor;

	return uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 6));
}

/*
 * Bytes per CPU if memory is short. A recording that takes such a spare only has to set the size:
 * one or two waits in the kernel instead of ten.
 */
#define SMALL_BUFFER 4096
/* An "auto" spare takes at most this fraction of the machine's memory. */
#define SPARE_MEMORY_SHARE 256

static uint64_t sparing_wanted_bytes(const struct config *config)
{
	uint64_t each = config->buffer_size, most = machine_memory() / SPARE_MEMORY_SHARE;

	return config->spare == SPARE_YES || each <= most / (unsigned)get_nprocs() ? each
										   : SMALL_BUFFER;
}

static bool sparing_is_wanted(const struct manager *m)
{
	if (m->options.private || m->stopping || m->config.spare == SPARE_NO)
		return false;
	return m->config.spare == SPARE_YES || sparing_instances_are_small();
}

static bool sparing_something_records(const struct manager *m)
{
	const struct session *s;

	TAILQ_FOREACH(s, &m->sessions, list)
	if (session_lives(s))
		return true;
	return false;
}

static int sparing_submit(struct manager *m, bool wanted, struct error *err)
{
	_cleanup_free_ char *clock = strdup(m->config.clock);
	_cleanup_free_ struct refresh *r = calloc(1, sizeof(*r));
	int e;

	if (!r || !clock)
		return error_errno(err, -ENOMEM, "worker");
	e = manager_worker_env(m, &r->env, err);
	if (e < 0)
		return e;
	r->work = (struct work){ .run = refresh_run, .done = refresh_done };
	r->sparing = &m->sparing;
	r->wanted = wanted;
	r->asked_for = m->config.spare == SPARE_YES;
	r->clock = TAKE_PTR(clock);
	r->buffer_bytes = sparing_wanted_bytes(&m->config);
	m->sparing.under_way++;
	worker_submit(m->worker, &TAKE_PTR(r)->work);
	return 0;
}

void sparing_refresh(struct manager *m)
{
	bool wanted = sparing_is_wanted(m);
	_cleanup_error_ struct error err = ERROR_INIT;

	if (wanted ? sparing_something_records(m) : !m->sparing.there && !m->sparing.under_way)
		return;
	if (sparing_submit(m, wanted, &err) < 0)
		sparing_log_failure(m->config.spare == SPARE_YES, &err);
}

void sparing_taken(struct manager *m)
{
	m->sparing.there = false;
	m->sparing.bytes = 0;
}

void sparing_deinit(struct sparing *s)
{
	capture_spare_free(s->spare);
	free(s->clock);
	*s = (struct sparing){ 0 };
}
