/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/sparing.h"

#include <string.h>

#include "capture/spare.h"
#include "service/manager.h"
#include "service/worker.h"
#include "util/log.h"

struct refresh {
	struct work work;
	struct sparing *sparing;
	/* The worker's, until it is done. */
	struct capture_env env;
	bool wanted, there;
	char *clock;
	uint64_t buffer_bytes, bytes;
	struct error err;
};

static bool is_as_wanted(const struct sparing *s, const struct refresh *r)
{
	return r->wanted && s->buffer_bytes == r->buffer_bytes && strcmp(s->clock, r->clock) == 0;
}

static void make(struct sparing *s, struct refresh *r)
{
	const struct capture_request request = { .clock = r->clock,
						 .buffer_bytes = r->buffer_bytes };

	if (capture_spare_new(&s->spare, &r->env, ++s->last_number, &request, &r->err) < 0)
		return;
	free(s->clock);
	s->clock = TAKE_PTR(r->clock);
	s->buffer_bytes = r->buffer_bytes;
}

static void refresh(struct work *w)
{
	struct refresh *r = container_of(w, struct refresh, work);
	struct sparing *s = r->sparing;

	if (s->spare && !is_as_wanted(s, r))
		s->spare = capture_spare_free(s->spare);
	if (r->wanted && !s->spare)
		make(s, r);
	r->there = s->spare != NULL;
	r->bytes = r->there ? capture_spare_bytes(s->spare) : 0;
}

static void tell_failure(const struct error *err)
{
	static struct log_limit limit = LOG_LIMIT_INIT;

	if (log_limit_pass(&limit))
		log_warning("nothing is prepared for the next recording: %s", err->message);
}

static void refreshed(struct work *w)
{
	struct refresh *r = container_of(w, struct refresh, work);

	r->sparing->there = r->there;
	r->sparing->bytes = r->bytes;
	r->sparing->under_way--;
	if (r->err.code)
		tell_failure(&r->err);
	error_deinit(&r->err);
	free(r->clock);
	free(r);
}

static int submit(struct manager *m, bool wanted, struct error *err)
{
	_cleanup_free_ char *clock = strdup(m->config.clock);
	_cleanup_free_ struct refresh *r = calloc(1, sizeof(*r));
	int e;

	if (!r || !clock)
		return error_errno(err, -ENOMEM, "worker");
	e = manager_worker_env(m, &r->env, err);
	if (e < 0)
		return e;
	r->work = (struct work){ .run = refresh, .done = refreshed };
	r->sparing = &m->sparing;
	r->wanted = wanted;
	r->clock = TAKE_PTR(clock);
	r->buffer_bytes = m->config.buffer_size;
	m->sparing.under_way++;
	worker_submit(m->worker, &TAKE_PTR(r)->work);
	return 0;
}

void sparing_refresh(struct manager *m)
{
	bool wanted = m->config.spare && !m->options.private && !m->stopping;
	_cleanup_error_ struct error err = ERROR_INIT;

	if (!wanted && !m->sparing.there && !m->sparing.under_way)
		return;
	if (submit(m, wanted, &err) < 0)
		tell_failure(&err);
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
