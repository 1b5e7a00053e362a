/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/metrics.h"

#include <inttypes.h>

static void agent_metrics_put(struct buf *out, const char *name, const char *type, const char *help,
			      uint64_t value)
{
	buf_printf(out,
		   "# HELP traced_agent_%s %s\n# TYPE traced_agent_%s %s\ntraced_agent_%s %" PRIu64
		   "\n",
		   name, help, name, type, name, value);
}

static void agent_metrics_put_refusals(struct buf *out, const struct agent *a)
{
	buf_puts(out, "# HELP traced_agent_orders_refused_total Orders refused, by reason.\n"
		      "# TYPE traced_agent_orders_refused_total counter\n");
	for (int i = VERDICT_FIRST_REFUSAL; i < VERDICT_COUNT; i++)
		buf_printf(out, "traced_agent_orders_refused_total{reason=\"%s\"} %" PRIu64 "\n",
			   verdict_name((enum verdict)i), a->verdicts[i]);
}

static void agent_metrics_put_polls(struct buf *out, const struct agent *a)
{
	uint64_t polls = 0, unchanged = 0, failures = 0, last_ns = 0;

	for (size_t i = 0; i < a->policy.orders_urls.count; i++) {
		const struct poll *p = &a->polls[i];

		polls += p->polls;
		unchanged += p->unchanged;
		failures += p->failures;
		last_ns = i ? MIN(last_ns, p->last_ns) : p->last_ns;
	}
	agent_metrics_put(out, "polls_total", "counter", "Requests for orders.", polls);
	agent_metrics_put(out, "polls_unchanged_total", "counter",
			  "Requests whose answer was that nothing changed.", unchanged);
	agent_metrics_put(out, "poll_failures_total", "counter", "Requests without an answer.",
			  failures);
	agent_metrics_put(
		out, "last_poll_time_seconds", "gauge",
		"Last answer to a request for orders, in seconds since 1970; with several "
		"URLs the earliest one.",
		last_ns / NSEC_PER_SEC);
}

static void agent_metrics_put_broker(struct buf *out, const struct agent *a)
{
	struct mqtt_counts counts;

	if (!a->mqtt)
		return;
	counts = mqtt_counts(a->mqtt);
	agent_metrics_put(out, "broker_up", "gauge", "1 while the broker is connected.",
			  mqtt_is_up(a->mqtt));
	agent_metrics_put(out, "broker_connections_total", "counter", "Connections to the broker.",
			  counts.connections);
	agent_metrics_put(out, "broker_failures_total", "counter",
			  "Connections that were lost or not made.", counts.failures);
}

static int agent_metrics_format(const struct agent *a, bool up, struct buf *out)
{
	agent_metrics_put(out, "up", "gauge", "1 while the agent runs, 0 once it has ended.", up);
	agent_metrics_put(out, "orders_taken_total", "counter", "Orders taken.",
			  a->verdicts[VERDICT_TAKE]);
	agent_metrics_put(out, "orders_of_others_total", "counter",
			  "Orders meant for other boards.", a->verdicts[VERDICT_OTHERS]);
	agent_metrics_put_refusals(out, a);
	agent_metrics_put(out, "orders_interrupted_total", "counter",
			  "Orders that the end of an agent interrupted.", a->interrupted);
	agent_metrics_put(out, "orders_withdrawn_total", "counter",
			  "Orders withdrawn after they were taken.", a->withdrawn);
	agent_metrics_put(out, "last_serial", "gauge", "Highest serial of an order taken.",
			  state_last_serial(&a->state));
	agent_metrics_put(out, "recordings_total", "counter", "Recordings with results.",
			  a->recordings);
	agent_metrics_put(out, "recording_failures_total", "counter", "Recordings that failed.",
			  a->recording_failures);
	agent_metrics_put(out, "only_if_denials_total", "counter",
			  "Answers of only_if's program that were not yes.",
			  a->may_record.denials + a->may_upload.denials);
	agent_metrics_put_polls(out, a);
	agent_metrics_put_broker(out, a);
	agent_metrics_put(out, "uploads_total", "counter", "Results that the store has.",
			  a->upload.done);
	agent_metrics_put(out, "uploads_present_total", "counter",
			  "Results that the store had before they were sent.", a->upload.present);
	agent_metrics_put(out, "upload_failures_total", "counter", "Tries that failed.",
			  a->upload.failures);
	agent_metrics_put(out, "uploads_unconfirmed_total", "counter",
			  "Results that the store accepted, but did not have afterwards.",
			  a->upload.unconfirmed);
	agent_metrics_put(out, "spool_bytes", "gauge", "Bytes of results that wait.",
			  a->spool.bytes);
	agent_metrics_put(out, "spool_dropped_total", "counter",
			  "Results that the spool had no room for.", a->spool.dropped);
	return buf_string(out) ? 0 : -ENOMEM;
}

void agent_metrics_write(struct agent *a, bool up)
{
	static struct log_limit limit = LOG_LIMIT_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r;

	if (!a->policy.metrics)
		return;
	a->metrics_ns = now_ns(CLOCK_BOOTTIME);
	r = agent_metrics_format(a, up, &text);
	if (r >= 0)
		r = replace_file(a->policy.metrics, text.data, text.len, 0644, false);
	if (r < 0 && log_limit_pass(&limit))
		log_warning("can't write the metrics to %s: %s", a->policy.metrics, strerror(-r));
}

void agent_metrics_tick(struct agent *a)
{
	if (now_ns(CLOCK_BOOTTIME) - a->metrics_ns >= METRICS_INTERVAL_NS)
		agent_metrics_write(a, true);
}
