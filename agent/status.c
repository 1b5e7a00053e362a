/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/status.h"

#include "base/json.h"
#include "base/visible.h"

static const char *const names[OUTCOME_COUNT] = {
	[OUTCOME_LATER] = "later",
	[OUTCOME_WAITING] = "waiting",
	[OUTCOME_RECORDING] = "recording",
	[OUTCOME_UPLOADING] = "uploading",
	[OUTCOME_DONE] = "done",
	[OUTCOME_FAILED] = "failed",
	[OUTCOME_REFUSED] = "refused",
	[OUTCOME_WITHDRAWN] = "withdrawn",
	[OUTCOME_INTERRUPTED] = "interrupted",
	[OUTCOME_ENDED] = "ended",
};

const char *outcome_name(enum outcome outcome)
{
	return names[outcome];
}

bool outcome_is_past(enum outcome outcome)
{
	return outcome > OUTCOME_RECORDING;
}

const struct status_order *status_find(const struct status *s, uint64_t serial)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->orders[i].serial == serial)
			return &s->orders[i];
	return NULL;
}

void status_note(struct status *s, uint64_t serial, enum outcome outcome, const char *reason)
{
	const struct status_order *found = status_find(s, serial);
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct status_order order = { .serial = serial, .outcome = outcome };
	size_t i = found ? (size_t)(found - s->orders) : 0;

	/* Servers and orders may have chosen a part of it. */
	buf_visible(&text, reason ?: "", STATUS_REASON_MAX);
	snprintf(order.reason, sizeof(order.reason), "%s", buf_string(&text) ?: "");
	if (found && found->outcome == outcome && strcmp(found->reason, order.reason) == 0)
		return;
	if (found || s->count == STATUS_ORDERS_MAX) {
		s->count--;
		memmove(&s->orders[i], &s->orders[i + 1], (s->count - i) * sizeof(order));
	}
	s->orders[s->count++] = order;
	s->has_changed = true;
}

static void status_put_head(struct buf *out, const char *state, uint64_t now)
{
	buf_putc(out, '{');
	json_put_string_key(out, "agent", TRACED_VERSION);
	json_put_string_key(out, "state", state);
	json_put_u64_key(out, "time", now);
}

static void status_put_order(struct buf *out, const struct status_order *order)
{
	json_put_comma(out);
	buf_putc(out, '{');
	json_put_u64_key(out, "serial", order->serial);
	json_put_string_key(out, "outcome", names[order->outcome]);
	if (order->reason[0])
		json_put_string_key(out, "reason", order->reason);
	buf_putc(out, '}');
}

void status_put(struct buf *out, const struct status *s, const char *state, uint64_t now,
		uint64_t spool_bytes)
{
	status_put_head(out, state, now);
	json_put_u64_key(out, "spool_bytes", spool_bytes);
	json_put_key(out, "orders");
	buf_putc(out, '[');
	for (size_t i = 0; i < s->count; i++)
		status_put_order(out, &s->orders[i]);
	buf_puts(out, "]}");
}

void status_put_dead(struct buf *out, uint64_t now)
{
	status_put_head(out, "dead", now);
	buf_putc(out, '}');
}
