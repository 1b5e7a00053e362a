/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/judge.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#include "base/event_glob.h"
#include "base/io.h"

static bool judge_has(const struct string_list *list, const char *word)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i], word) == 0)
			return true;
	return false;
}

/* glob: NAME=GLOB. A board without such a label does not match. */
static bool judge_has_label(const struct policy *p, const char *glob)
{
	size_t len = (size_t)(strchr(glob, '=') - glob) + 1;

	for (size_t i = 0; i < p->labels.count; i++)
		if (strncmp(p->labels.items[i], glob, len) == 0)
			return fnmatch(glob + len, p->labels.items[i] + len, 0) == 0;
	return false;
}

/*
 * A board is in the share if the first eight bytes of BLAKE2b(salt, NUL, id), as a fraction of
 * 2^64, lie below it. So the boards of a larger share include those of a smaller one.
 */
static bool judge_is_in_share(const struct order *o, const struct policy *p)
{
	unsigned char hash[crypto_generichash_BYTES];
	crypto_generichash_state state;
	uint64_t fraction = 0;
	char serial[24];
	const char *salt = o->salt ?: serial;

	snprintf(serial, sizeof(serial), "%" PRIu64, o->serial);
	crypto_generichash_init(&state, NULL, 0, sizeof(hash));
	crypto_generichash_update(&state, (const unsigned char *)salt, strlen(salt) + 1);
	crypto_generichash_update(&state, (const unsigned char *)p->id, strlen(p->id));
	crypto_generichash_final(&state, hash, sizeof(hash));
	for (size_t i = 0; i < sizeof(fraction); i++)
		fraction = fraction << 8 | hash[i];
	return (uint64_t)((unsigned __int128)fraction * ORDER_SHARE_ALL >> 64) < o->share;
}

static bool judge_is_meant(const struct order *o, const struct policy *p)
{
	if (strcmp(o->fleet, p->fleet) != 0 || (o->group && !judge_has(&p->groups, o->group)))
		return false;
	for (size_t i = 0; i < o->labels.count; i++)
		if (!judge_has_label(p, o->labels.items[i]))
			return false;
	return judge_is_in_share(o, p);
}

/* Sound for words that word_is_event() accepts: see there. */
static bool judge_allows_event(const struct string_list *globs, const char *word)
{
	const char *colon = strchr(word, ':');
	char system[128];

	snprintf(system, sizeof(system), "%.*s", (int)(colon - word), word);
	for (size_t i = 0; i < globs->count; i++)
		if (event_glob_has(globs->items[i], system, colon + 1))
			return true;
	return false;
}

/* The verdict, with its reason in err. */
#define judge_refuse(verdict, err, ...) (error_set(err, -EPERM, __VA_ARGS__), verdict)

static enum verdict judge_time(const struct order *o, const struct policy *p, uint64_t now,
			       struct error *err)
{
	if (o->expires <= now)
		return judge_refuse(VERDICT_EXPIRED, err, "it has expired");
	if (o->expires - now > p->validity_ns / NSEC_PER_SEC)
		return judge_refuse(VERDICT_VALIDITY, err,
				    "it is valid for longer than validity_max");
	return o->not_before > now ? VERDICT_LATER : VERDICT_TAKE;
}

static enum verdict judge_bounds(const struct order *o, const struct policy *p, struct error *err)
{
	if (o->duration_ns > p->duration_ns)
		return judge_refuse(VERDICT_DURATION, err, "its duration exceeds duration_max");
	if (o->window_ns > p->window_ns)
		return judge_refuse(VERDICT_WINDOW, err, "its window exceeds window_max");
	if (o->capture && !p->captures)
		return judge_refuse(VERDICT_CAPTURE, err, "captures are not allowed");
	/* A size limit says nothing about the count: the recorder ends at segments_max. */
	if (o->segments.ns && (o->duration_ns - 1) / o->segments.ns >= p->segments_max)
		return judge_refuse(VERDICT_SEGMENTS, err, "its segments exceed segments_max");
	if (p->cpu_permille && o->cpu_permille > p->cpu_permille)
		return judge_refuse(VERDICT_CPU, err, "its cpu_max exceeds the policy's");
	if (o->presigned.count && !p->presigned)
		return judge_refuse(VERDICT_PRESIGNED, err, "URLs by an order are not allowed");
	if (o->profile && !judge_has(&p->profiles, o->profile))
		return judge_refuse(VERDICT_PROFILE, err, "profile %s is not allowed", o->profile);
	for (size_t i = 0; i < o->events.count; i++)
		if (!judge_allows_event(&p->events, o->events.items[i]))
			return judge_refuse(VERDICT_EVENTS, err, "event %s is not allowed",
					    o->events.items[i]);
	for (size_t i = 0; i < o->reports.count; i++)
		if (!judge_has(&p->reports, o->reports.items[i]))
			return judge_refuse(VERDICT_REPORTS, err, "report %s is not allowed",
					    o->reports.items[i]);
	if (o->until && !p->triggers)
		return judge_refuse(VERDICT_TRIGGERS, err, "triggers are not allowed");
	if (o->until_event && !judge_allows_event(&p->events, o->until_event))
		return judge_refuse(VERDICT_EVENTS, err, "event %s is not allowed", o->until_event);
	if (o->sql && !p->sql)
		return judge_refuse(VERDICT_SQL, err, "SQL is not allowed");
	/* Without a colon it is the SQL's event. */
	if (o->hist && strchr(o->hist_event, ':') && !judge_allows_event(&p->hist, o->hist_event))
		return judge_refuse(VERDICT_HIST, err, "a histogram of %s is not allowed",
				    o->hist_event);
	return VERDICT_TAKE;
}

enum verdict judge_order(const struct order *o, const struct policy *p, const struct state *s,
			 const unsigned char digest[DIGEST_SIZE], uint64_t now, struct error *err)
{
	const char *group = o->group ?: STATE_ALL;
	enum verdict verdict;

	if (state_knows(s, group, o->serial, digest))
		return VERDICT_KNOWN;
	if (!judge_is_meant(o, p))
		return VERDICT_OTHERS;
	if (o->serial <= state_serial(s, group))
		return judge_refuse(VERDICT_REPLAYED, err,
				    "its serial is not above that of its group's last order");
	verdict = judge_bounds(o, p, err);
	if (verdict == VERDICT_TAKE)
		verdict = judge_time(o, p, now, err);
	if (verdict == VERDICT_TAKE && state_orders(s, now) >= p->orders_a_day)
		return judge_refuse(VERDICT_TOO_MANY, err, "orders_a_day is reached");
	return verdict;
}

enum verdict judge_again(const struct order *o, const struct policy *p, uint64_t now,
			 struct error *err)
{
	enum verdict verdict = judge_is_meant(o, p) ? judge_bounds(o, p, err) : VERDICT_OTHERS;

	if (verdict == VERDICT_TAKE && o->expires <= now)
		return judge_refuse(VERDICT_EXPIRED, err, "it expired before its turn");
	return verdict;
}
