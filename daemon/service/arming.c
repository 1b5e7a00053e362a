/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/arming.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>

#include "base/io.h"
#include "daemon/capture/plan/spare.h"
#include "daemon/service/session.h"
#include "daemon/service/worker.h"

struct arming {
	struct work work;
	struct manager *manager;
	struct session *session;       /* used by the loop only; NULL: the session is over */
	struct retirement *retirement; /* owned; used by the loop, if the session is over */
	atomic_bool forgotten; /* the session is over: the worker undoes what it has armed */
	/* Used by the worker until it is done. */
	struct start_plan plan;
	struct capture_env env;
	struct capture *capture;
	bool failed;   /* the capture is being undone */
	int stream_fd; /* a copy of the spool's, which the loop may close meanwhile; -EBADF: none */
	struct error err;
	struct capture_spare **spare; /* used by the worker only */
	bool spare_taken;
};

struct retirement {
	struct work work;
	TAILQ_ENTRY(retirement) list; /* in manager->retirements, if it waits */
	bool waits;		      /* for its thread's end */
	struct manager *manager;
	/* From retirement_submit() on. */
	struct capture *capture;
	struct draining *draining;
	int stream_fd;
};

/* A slice. 1: there is more; negative: arming failed. */
static int arming_go_on(struct arming *a)
{
	bool had_spare = *a->spare;
	int r = 0;

	if (!a->capture)
		r = capture_begin(&a->capture, a->spare, &a->env, &a->plan.request, &a->err);
	if (r == 0 && atomic_load(&a->forgotten))
		r = -ECANCELED;
	if (r == 0)
		r = capture_arm(a->capture, &a->err);
	a->spare_taken |= had_spare && !*a->spare;
	return r ? r : capture_prepare(a->capture, a->stream_fd, &a->err);
}

static bool arming_run(struct work *w)
{
	struct arming *a = container_of(w, struct arming, work);
	int r = a->failed ? -ECANCELED : arming_go_on(a);

	if (r >= 0)
		return r > 0;
	a->failed = true;
	if (a->capture && capture_undo(a->capture))
		return true;
	a->capture = capture_free(a->capture);
	return false;
}

static void arming_done(struct work *w)
{
	struct arming *a = container_of(w, struct arming, work);
	struct manager *m = a->manager;

	if (a->spare_taken)
		sparing_taken(m);
	if (a->session)
		session_armed(a->session, a->capture, a->stream_fd, &a->err);
	else
		retirement_submit(a->retirement, a->capture, NULL, a->stream_fd);
	start_plan_deinit(&a->plan);
	error_deinit(&a->err);
	free(a);
	/* Arming failed, so no retirement follows that would make a new spare. */
	sparing_refresh(m);
}

int arming_start(struct arming **ret, struct session *s, struct start_plan *plan, struct error *err)
{
	_cleanup_free_ struct arming *a = calloc(1, sizeof(*a));
	_cleanup_close_ int stream_fd = -EBADF;
	int r;

	if (!a)
		return error_errno(err, -ENOMEM, "session");
	r = manager_worker_env(s->manager, &a->env, err);
	if (r < 0)
		return r;
	if (!s->ring) {
		stream_fd = fcntl(s->spool.fd, F_DUPFD_CLOEXEC, 0);
		if (stream_fd < 0)
			return error_errno(err, -errno, "session");
	}
	a->stream_fd = TAKE_FD(stream_fd);
	a->work = (struct work){ .run = arming_run, .done = arming_done, .account = s->account };
	a->manager = s->manager;
	a->session = s;
	a->spare = &s->manager->sparing.spare;
	start_plan_move(&a->plan, plan);
	*ret = TAKE_PTR(a);
	worker_submit(s->manager->worker, &(*ret)->work);
	return 0;
}

void arming_forget(struct arming *a, struct retirement *r)
{
	a->session = NULL;
	a->retirement = r;
	atomic_store(&a->forgotten, true);
}

static bool retirement_run(struct work *w)
{
	struct retirement *r = container_of(w, struct retirement, work);

	draining_join(r->draining);
	if (r->capture && capture_undo(r->capture))
		return true;
	capture_free(r->capture);
	return false;
}

static void retirement_done(struct work *w)
{
	struct retirement *r = container_of(w, struct retirement, work);
	struct manager *m = r->manager;

	draining_free(r->draining);
	close_fd(r->stream_fd);
	retirement_free(r);
	sparing_refresh(m);
}

struct retirement *retirement_new(struct manager *m, uid_t account)
{
	struct retirement *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->manager = m;
	r->work =
		(struct work){ .run = retirement_run, .done = retirement_done, .account = account };
	return r;
}

static void retirement_begin(void *userdata)
{
	struct retirement *r = userdata;

	if (r->waits)
		TAILQ_REMOVE(&r->manager->retirements, r, list);
	r->waits = false;
	worker_submit(r->manager->worker, &r->work);
}

/*
 * A thread with work may take long, and the worker is everybody's. Without work it ends at once;
 * then the removal comes before a start of the same name.
 */
void retirement_submit(struct retirement *r, struct capture *capture, struct draining *draining,
		       int stream_fd)
{
	r->capture = capture;
	r->draining = draining;
	r->stream_fd = stream_fd;
	r->waits = draining && draining_is_busy(draining);
	if (draining)
		draining_leave(draining, r->waits ? retirement_begin : NULL, r);
	if (r->waits)
		TAILQ_INSERT_TAIL(&r->manager->retirements, r, list);
	else
		retirement_begin(r);
}

void retirement_submit_all(struct manager *m)
{
	struct retirement *r;

	while ((r = TAILQ_FIRST(&m->retirements))) {
		draining_leave(r->draining, NULL, NULL);
		retirement_begin(r);
	}
}

void retirement_free(struct retirement *r)
{
	free(r);
}
