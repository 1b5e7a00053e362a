/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The source is an elapsed timer: sources of equal priority are served in the order in which they
 * became pending. For sd-event a deferred source is pending since its creation, hence always
 * first, and programs' marks would wait.
 */
#include "daemon/service/turns.h"

#include "base/io.h"
#include "daemon/service/connection.h"

/* A daemon that served nobody for this time is idle. */
#define IDLE_NS (10 * NSEC_PER_MSEC)

/* Users follow one another in order of their numbers. */
static struct connection *turns_next(const struct turns *t)
{
	struct connection *c, *best = NULL;

	TAILQ_FOREACH(c, &t->waiting, turn)
	if (!best || c->account - t->last_account - 1 < best->account - t->last_account - 1)
		best = c;
	return best;
}

static void turns_on_timer(void *userdata)
{
	struct turns *t = userdata;
	struct connection *c = turns_next(t);

	if (!c)
		return;
	t->last_account = c->account;
	t->served_ns = now_ns(CLOCK_MONOTONIC);
	turns_leave(t, c);
	if (!TAILQ_EMPTY(&t->waiting))
		loop_timer_in(t->source, 0);
	connection_serve(c);
}

bool turns_at_once(struct turns *t, uid_t account)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (!TAILQ_EMPTY(&t->waiting) || now - t->served_ns < IDLE_NS)
		return false;
	t->last_account = account;
	t->served_ns = now;
	return true;
}

int turns_init(struct turns *t, struct loop *loop)
{
	TAILQ_INIT(&t->waiting);
	return loop_add_timer(loop, &t->source, CLOCK_MONOTONIC, 0, turns_on_timer, t);
}

void turns_deinit(struct turns *t)
{
	t->source = loop_source_free(t->source);
}

void turns_wait(struct turns *t, struct connection *c)
{
	if (c->waits)
		return;
	c->waits = true;
	TAILQ_INSERT_TAIL(&t->waiting, c, turn);
	loop_timer_in(t->source, 0);
}

void turns_leave(struct turns *t, struct connection *c)
{
	if (!c->waits)
		return;
	c->waits = false;
	TAILQ_REMOVE(&t->waiting, c, turn);
}
