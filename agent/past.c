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

/* VERDICT_TAKE: it is among the jobs. VERDICT_STATE: nothing is known of it any more. */
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
	/* The board's labels may have changed; two orders of one serial share a file. */
	if (verdict == VERDICT_OTHERS || (verdict == VERDICT_TAKE && order.serial != serial) ||
	    jobs_have(&a->jobs, serial) || a->jobs.count == JOBS_MAX)
		return VERDICT_STATE;
	if (verdict != VERDICT_TAKE)
		return verdict;
	if (kept.start_s > now / NSEC_PER_SEC)
		delay = MIN(kept.start_s, order.expires) * NSEC_PER_SEC - now;
	log_notice("order %" PRIu64 " goes on waiting", serial);
	agent_add_job(a, &order, now_ns(CLOCK_BOOTTIME) + delay, past_find_place(a, kept.place));
	return VERDICT_TAKE;
}

static void past_close(struct agent *a, uint64_t serial, enum verdict verdict,
		       const struct error *why)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	/* An order with a saved outcome is over, even if it was not closed. */
	if (!status_find(&a->status, serial)) {
		if (verdict == VERDICT_STATE) {
			a->interrupted++;
			log_warning("order %" PRIu64 " was interrupted; it is not taken again",
				    serial);
			status_note(&a->status, serial, OUTCOME_INTERRUPTED, NULL);
		} else {
			a->verdicts[verdict]++;
			agent_log_error(LOG_WARNING, "refused order", serial, why);
			status_note(&a->status, serial, OUTCOME_REFUSED, verdict_name(verdict));
		}
		agent_save_outcomes(a);
	}
	if (state_close(&a->state, serial, &err) < 0)
		agent_log_error(LOG_WARNING, "order", serial, &err);
}

/* Goes through the orders that the last life left open. */
static void past_go_through(struct agent *a)
{
	size_t i = 0;

	while (i < a->state.open_count) {
		const struct state_open open = a->state.open[i];
		_cleanup_error_ struct error err = ERROR_INIT;
		enum verdict verdict = VERDICT_STATE;

		if (open.waits && !status_find(&a->status, open.serial))
			verdict = past_take_up(a, open.serial, &err);
		if (verdict == VERDICT_TAKE)
			i++;
		else
			past_close(a, open.serial, verdict, &err);
	}
}

/* Some of its results may come all the same. */
static bool past_has_failed(const struct agent *a, uint64_t serial)
{
	const struct status_order *order = status_find(&a->status, serial);

	return order && (order->outcome == OUTCOME_FAILED || order->outcome == OUTCOME_INTERRUPTED);
}

void agent_take_up(struct agent *a)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	uint64_t last = 0;

	if (outcomes_load(&a->status, a->state.dirfd, &err) < 0)
		agent_log_error(LOG_WARNING, "outcomes", 0, &err);
	past_go_through(a);
	/* Without a saved outcome, its results wait, or it is only known that it ended. */
	while ((last = state_serial_after(&a->state, last)))
		if (spool_has(&a->spool, last) && !past_has_failed(a, last))
			status_note(&a->status, last, OUTCOME_UPLOADING, NULL);
		else if (!status_find(&a->status, last))
			status_note(&a->status, last, OUTCOME_ENDED, NULL);
	agent_note_results(a, OUTCOME_ENDED, NULL);
}
