/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/arming.h"

#include "base/io.h"
#include "daemon/capture/plan/spare.h"
#include "daemon/service/session.h"
#include "daemon/service/worker.h"

struct arming {
	struct work work;
	struct manager *manager;
	struct session *session; /* used by the loop only; NULL: the session is over */
	/* Used by the worker until it is done. */
	struct start_plan plan;
	struct capture_env env;
	struct capture *capture;
	struct error err;
	uint64_t cpu_ns;
	struct capture_spare **spare; /* used by the worker only */
	bool spare_taken;
};

struct retirement {
	struct work work;
	struct manager *manager;
	struct capture *capture;
};

static void arming_run(struct work *w)
{
	struct arming *a = container_of(w, struct arming, work);
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	bool had_spare = *a->spare;

	capture_new(&a->capture, a->spare, &a->env, &a->plan.request, &a->err);
	a->spare_taken = had_spare && !*a->spare;
	a->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
}

static void arming_done(struct work *w)
{
	struct arming *a = container_of(w, struct arming, work);
	struct manager *m = a->manager;

	if (a->spare_taken)
		sparing_taken(m);
	if (a->session)
		session_armed(a->session, a->capture, a->cpu_ns, &a->err);
	else
		capture_retire(m, a->capture);
	start_plan_deinit(&a->plan);
	error_deinit(&a->err);
	free(a);
	/* Arming failed, so no retirement follows that would make a new spare. */
	sparing_refresh(m);
}

int arming_start(struct arming **ret, struct session *s, struct start_plan *plan, struct error *err)
{
	_cleanup_free_ struct arming *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return error_errno(err, -ENOMEM, "session");
	r = manager_worker_env(s->manager, &a->env, err);
	if (r < 0)
		return r;
	a->work = (struct work){ .run = arming_run, .done = arming_done };
	a->manager = s->manager;
	a->session = s;
	a->spare = &s->manager->sparing.spare;
	start_plan_move(&a->plan, plan);
	*ret = TAKE_PTR(a);
	worker_submit(s->manager->worker, &(*ret)->work);
	return 0;
}

void arming_forget(struct arming *a)
{
	if (a)
		a->session = NULL;
}

static void retirement_run(struct work *w)
{
	capture_free(container_of(w, struct retirement, work)->capture);
}

static void retirement_done(struct work *w)
{
	struct retirement *r = container_of(w, struct retirement, work);

	sparing_refresh(r->manager);
	free(r);
}

void capture_retire(struct manager *m, struct capture *capture)
{
	struct retirement *r = capture ? malloc(sizeof(*r)) : NULL;

	if (!r) {
		capture_free(capture);
		return;
	}
	*r = (struct retirement){
		.work = { .run = retirement_run, .done = retirement_done },
		.manager = m,
		.capture = capture,
	};
	worker_submit(m->worker, &r->work);
}
