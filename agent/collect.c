/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/collect.h"

#include <inttypes.h>
#include <sys/wait.h>

#include "base/io.h"

/* tracectl's exit status for a recording with a loss, which its results count. */
#define STATUS_LOSSES 3
/* `tracectl wait` ends so if no condition was met. */
#define STATUS_NOTHING 4

static void agent_hurry_upload(struct agent *a)
{
	/* The store has its rest after a failure. */
	if (!a->upload.backoff.failures)
		a->upload.backoff.next_ns = MIN(a->upload.backoff.next_ns, now_ns(CLOCK_BOOTTIME));
}

/* cause: tracectl's last message, or none. */
static int agent_explain(int status, const char *cause, struct error *err)
{
	if (!WIFEXITED(status))
		return error_set(err, -EIO, "tracectl ended with signal %d", WTERMSIG(status));
	if (*cause)
		return error_set(err, -EIO, "%s", cause);
	return error_set(err, -EIO, "tracectl ended with status %d", WEXITSTATUS(status));
}

static int agent_keep_results(struct agent *a, int status, const struct order *order,
			      struct error *err)
{
	/* Segments that are whole are results, however the child ended. */
	if (order_has_segments(order))
		recorder_take_segments(&a->recorder, &a->policy, &a->spool, 0);
	if (a->recorder.urges)
		return error_set(err, -ETIMEDOUT, "tracectl did not end in time");
	if (!WIFEXITED(status) ||
	    (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != STATUS_LOSSES))
		return agent_explain(status, a->recorder.cause, err);
	return recorder_collect(&a->recorder, order, &a->policy, &a->spool, err);
}

/* The last segment may be in the store already. */
static void agent_close_recorded(struct agent *a)
{
	uint64_t serial = a->jobs.items[0].order.serial;
	bool waits = a->upload.sending == serial || spool_has(&a->spool, serial);
	char reason[STATUS_REASON_MAX] = "";

	if (a->spool.gave_way)
		snprintf(reason, sizeof(reason), "results that gave way: %u", a->spool.gave_way);
	else if (a->recorder.is_full)
		snprintf(reason, sizeof(reason), "segments_max is reached");
	agent_close_job(a, 0,
			order_has_segments(&a->jobs.items[0].order) && !waits ? OUTCOME_DONE
									      : OUTCOME_UPLOADING,
			reason);
}

void agent_collect(struct agent *a, int status)
{
	const struct order *order = &a->jobs.items[0].order;
	_cleanup_error_ struct error err = ERROR_INIT;

	recorder_say_rest(&a->recorder, order->serial);
	if (a->jobs.is_withdrawn) {
		recorder_discard(&a->recorder);
		agent_close_job(a, 0, OUTCOME_WITHDRAWN, NULL);
	} else if (order->until && WIFEXITED(status) && WEXITSTATUS(status) == STATUS_NOTHING) {
		log_notice("order %" PRIu64 ": nothing happened", order->serial);
		recorder_discard(&a->recorder);
		agent_close_job(a, 0, OUTCOME_DONE, "nothing happened");
	} else if (agent_keep_results(a, status, order, &err) < 0) {
		agent_fail_job(a, &err);
	} else {
		a->recordings++;
		log_notice("recorded order %" PRIu64, order->serial);
		agent_close_recorded(a);
	}
	agent_note_results(a, OUTCOME_FAILED);
	agent_hurry_upload(a);
}

void agent_take_segments(struct agent *a, uint64_t now)
{
	if (!a->recorder.pid || a->jobs.is_withdrawn || now < a->recorder.look_ns)
		return;
	if (!recorder_take_segments(&a->recorder, &a->policy, &a->spool, now))
		return;
	agent_note_results(a, OUTCOME_FAILED);
	agent_hurry_upload(a);
}
