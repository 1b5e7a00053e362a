/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/past.h"

#include <inttypes.h>
#include <string.h>

#include "agent/judge.h"
#include "agent/kept.h"
#include "agent/outcomes.h"
#include "base/io.h"

static const struct place *past_find_place(struct agent *a, const char *name)
{
	size_t count = 0;
	const struct place *places = a->mqtt && name ? mqtt_places(a->mqtt, &count) : NULL;

	for (size_t i = 0; i < count; i++)
		if (strcmp(places[i].name, name) == 0)
			return &places[i];
	return NULL;
}

/* VERDICT_TAKE: it is among the jobs. Otherwise err says why not. */
static enum verdict past_take_up(struct agent *a, uint64_t serial, struct error *err)
{
	uint64_t now = now_ns(CLOCK_REALTIME), delay = 0;
	_cleanup_kept_ struct kept kept = { .order = BUF_INIT };
	_cleanup_order_ struct order order = { 0 };
	enum verdict verdict;

	if (kept_get(a->state.dirfd, serial, &kept, err) < 0)
		return VERDICT_STATE;
	verdict = agent_read_order(a, kept.order.data, kept.order.len, &order, err);
	if (verdict == VERDICT_TAKE)
		verdict = judge_again(&order, &a->policy, now / NSEC_PER_SEC, err);
	/* The board's groups and labels may have changed. */
	if (verdict == VERDICT_OTHERS)
		error_set(err, -EPERM, "it is meant for other boards");
	if (verdict != VERDICT_TAKE)
		return verdict;
	if (order.serial != serial || jobs_have(&a->jobs, serial) || a->jobs.count == JOBS_MAX) {
		error_set(err, -EBADMSG, "its file is not its own");
		return VERDICT_STATE;
	}
	/* The clock may be behind by years: without a battery it begins in the past. */
	if (kept.start_s > now / NSEC_PER_SEC)
		delay = MIN(kept.start_s, order.expires) * NSEC_PER_SEC - now;
	delay = MIN(delay, order.window_ns);
	log_notice("order %" PRIu64 " goes on waiting", serial);
	agent_add_job(a, &order, now_ns(CLOCK_BOOTTIME) + delay, past_find_place(a, kept.place));
	return VERDICT_TAKE;
}

static void past_refuse(struct agent *a, uint64_t serial, enum verdict verdict,
			const struct error *why)
{
	a->verdicts[verdict]++;
	agent_log_error(LOG_WARNING, "refused order", serial, why);
	status_note(&a->status, serial, OUTCOME_REFUSED, verdict_name(verdict));
	agent_save_outcomes(a);
}

static void past_interrupt(struct agent *a, uint64_t serial)
{
	a->interrupted++;
	log_warning("order %" PRIu64 " was interrupted; it is not taken again", serial);
	status_note(&a->status, serial, OUTCOME_INTERRUPTED, NULL);
	agent_save_outcomes(a);
}

/*
 * An order with a saved outcome is over, even if it was not closed. One that waits may have been
 * refused before it was taken.
 */
static bool past_is_over(const struct agent *a, const struct state_open *open)
{
	const struct status_order *saved = status_find(&a->status, open->serial);

	return saved && !(open->waits && saved->outcome == OUTCOME_REFUSED);
}

/* False: the order has ended. */
static bool past_goes_on(struct agent *a, const struct state_open *open)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	enum verdict verdict;

	if (past_is_over(a, open))
		return false;
	if (!open->waits) {
		past_interrupt(a, open->serial);
		return false;
	}
	verdict = past_take_up(a, open->serial, &err);
	if (verdict != VERDICT_TAKE)
		past_refuse(a, open->serial, verdict, &err);
	return verdict == VERDICT_TAKE;
}

/* Goes through the orders that the last life left open. */
static void past_go_through(struct agent *a)
{
	size_t i = 0;

	while (i < a->state.open_count) {
		const struct state_open open = a->state.open[i];
		_cleanup_error_ struct error err = ERROR_INIT;

		if (past_goes_on(a, &open))
			i++;
		else if (state_close(&a->state, open.serial, &err) < 0)
			agent_log_error(LOG_WARNING, "order", open.serial, &err);
	}
}

/* Segments that a killed agent left go into the spool, if they are still wanted. */
static void past_take_segments(struct agent *a)
{
	const struct status_order *order =
		status_find(&a->status, recorder_find_left(&a->recorder));

	if (a->policy.captures && !(order && order->outcome == OUTCOME_WITHDRAWN))
		recorder_take_segments(&a->recorder, &a->policy, &a->spool, 0);
	recorder_discard(&a->recorder);
}

/* Whether results that wait leave the order its saved outcome. */
static bool past_keeps_outcome(const struct agent *a, uint64_t serial)
{
	const struct status_order *order = status_find(&a->status, serial);

	return order &&
	       (order->outcome == OUTCOME_FAILED || order->outcome == OUTCOME_INTERRUPTED ||
		order->outcome == OUTCOME_WITHDRAWN || order->outcome == OUTCOME_UPLOADING);
}

void agent_take_up(struct agent *a)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	uint64_t last = 0;

	if (outcomes_load(&a->status, a->state.dirfd, &err) < 0)
		agent_log_error(LOG_WARNING, "outcomes", 0, &err);
	past_take_segments(a);
	past_go_through(a);
	/* Without a saved outcome, its results wait, or it is only known that it ended. */
	while ((last = state_serial_after(&a->state, last)))
		if (spool_has(&a->spool, last) && !past_keeps_outcome(a, last))
			status_note(&a->status, last, OUTCOME_UPLOADING, NULL);
		else if (!status_find(&a->status, last))
			status_note(&a->status, last, OUTCOME_ENDED, NULL);
	agent_note_results(a, OUTCOME_ENDED);
}
