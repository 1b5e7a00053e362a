/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Limits what one user's programs can cost the daemon. Root is trusted.
 *
 * Bytes are limited by a token bucket. A ring is always taken whole, so the level may fall below
 * 0; then nothing is taken until it is above 0 again. Meanwhile marks wait in the rings, and
 * overflow hits only this user's own marks.
 */
#include "base/wide.h"
#include "daemon/marks/internal.h"

/* The bucket's size: this part of a second's bytes, and its minimum. */
#define BURST_PART 8
#define BURST_MIN MARK_RING_MAX
#define WORK_PER_DRAIN 4096 /* messages and procfs reads */

static int64_t user_burst(const struct marks *m)
{
	return (int64_t)MAX(m->limits.rate_per_user / BURST_PART, (uint64_t)BURST_MIN);
}

uid_t user_account(const struct marks *m, uid_t uid)
{
	return m->limits.account ? m->limits.account(m->limits.userdata, uid) : uid;
}

struct user *user_get(struct marks *m, uid_t account)
{
	struct user *u;

	LIST_FOREACH(u, &m->users, list)
	if (u->account == account)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	u->account = account;
	u->level = user_burst(m);
	u->filled_ns = now_ns(CLOCK_MONOTONIC);
	LIST_INSERT_HEAD(&m->users, u, list);
	return u;
}

static void user_fill(const struct marks *m, struct user *u, uint64_t now)
{
	uint64_t span = MIN(now - u->filled_ns, NSEC_PER_SEC);
	uint64_t bytes = mul_div(m->limits.rate_per_user, span, NSEC_PER_SEC);

	u->filled_ns = now;
	u->level += (int64_t)MIN(bytes, (uint64_t)user_burst(m) + MARK_RING_MAX);
	u->level = MIN(u->level, user_burst(m));
}

bool user_may_take(const struct marks *m, struct user *u)
{
	if (u->account == 0 || !m->limits.rate_per_user)
		return true;
	if (u->level <= 0)
		user_fill(m, u, now_ns(CLOCK_MONOTONIC));
	return u->level > 0;
}

bool user_is_exhausted(const struct user *u)
{
	return u->account != 0 && u->work > WORK_PER_DRAIN;
}

void users_tidy(struct marks *m)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct user *u, *next;

	for (u = LIST_FIRST(&m->users); u; u = next) {
		next = LIST_NEXT(u, list);
		u->work = 0;
		user_fill(m, u, now);
		/* Keep a user whose bucket is not full: reconnecting must not refill it. */
		if (u->refs || (m->limits.rate_per_user && u->level < user_burst(m)))
			continue;
		LIST_REMOVE(u, list);
		free(u);
	}
}
