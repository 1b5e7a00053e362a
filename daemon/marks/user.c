/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Limits what one user's programs can cost the daemon. Root is trusted.
 *
 * Bytes are limited by token buckets, of each user and of all together: a person can be many users.
 * A ring is always taken whole, so a level may fall below 0; then nothing is taken until it is
 * above 0 again. Meanwhile marks wait in the rings, and overflow hits only the marks of users who
 * make more than their rate, or of all who make marks while many do.
 */
#include "base/wide.h"
#include "daemon/marks/internal.h"

/* The bucket's size: this part of a second's bytes, and its minimum. */
#define BURST_PART 8
#define BURST_MIN MARK_RING_MAX
#define WORK_PER_DRAIN 4096 /* messages and procfs reads */

/* All users' rate together, as a multiple of one user's. */
#define RATES_TOGETHER 2

static int64_t rate_burst(uint64_t bytes_per_s)
{
	return (int64_t)MAX(bytes_per_s / BURST_PART, (uint64_t)BURST_MIN);
}

static void rate_fill(struct rate *r, uint64_t bytes_per_s, uint64_t now)
{
	uint64_t span = MIN(now - r->filled_ns, NSEC_PER_SEC);
	uint64_t bytes = mul_div(bytes_per_s, span, NSEC_PER_SEC);

	r->filled_ns = now;
	r->level += (int64_t)MIN(bytes, (uint64_t)rate_burst(bytes_per_s) + MARK_RING_MAX);
	r->level = MIN(r->level, rate_burst(bytes_per_s));
}

static bool rate_allows(struct rate *r, uint64_t bytes_per_s)
{
	if (r->level <= 0)
		rate_fill(r, bytes_per_s, now_ns(CLOCK_MONOTONIC));
	return r->level > 0;
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
	u->rate.level = rate_burst(m->limits.rate_per_user);
	u->rate.filled_ns = now_ns(CLOCK_MONOTONIC);
	LIST_INSERT_HEAD(&m->users, u, list);
	return u;
}

bool user_may_take(struct marks *m, struct user *u)
{
	const uint64_t rate = m->limits.rate_per_user;

	return u->account == 0 || !rate ||
	       (rate_allows(&u->rate, rate) && rate_allows(&m->together, RATES_TOGETHER * rate));
}

void user_note_taken(struct marks *m, struct user *u, uint64_t bytes)
{
	u->rate.level -= (int64_t)bytes;
	if (u->account != 0)
		m->together.level -= (int64_t)bytes;
}

bool user_is_exhausted(const struct user *u)
{
	return u->account != 0 && u->work > WORK_PER_DRAIN;
}

/* A user who connects again must have neither a full bucket nor a new share. */
static bool user_is_owing(const struct marks *m, const struct user *u)
{
	if (m->limits.rate_per_user && u->rate.level < rate_burst(m->limits.rate_per_user))
		return true;
	for (unsigned i = 0; i < SINKS_MAX; i++)
		if (u->taken[i] && m->slots >> i & 1)
			return true;
	return false;
}

void users_tidy(struct marks *m)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct user *u, *next;

	rate_fill(&m->together, RATES_TOGETHER * m->limits.rate_per_user, now);
	for (u = LIST_FIRST(&m->users); u; u = next) {
		next = LIST_NEXT(u, list);
		u->work = 0;
		rate_fill(&u->rate, m->limits.rate_per_user, now);
		if (u->refs || user_is_owing(m, u))
			continue;
		LIST_REMOVE(u, list);
		free(u);
	}
}
