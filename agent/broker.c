/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/broker.h"

#include <inttypes.h>

#include "base/io.h"
#include "base/plural.h"

/* Between two statuses, and between two looks at an order that can't be taken yet. */
#define STATUS_GAP_NS (2 * NSEC_PER_SEC)
#define AGAIN_NS (60 * NSEC_PER_SEC)

static void agent_take_news(struct agent *a, struct place *place, uint64_t now)
{
	enum verdict verdict = VERDICT_TAKE;

	if (place->replaced)
		log_notice("%s: %u order%s replaced before a look", place->name, place->replaced,
			   plural(place->replaced, " was", "s were"));
	place->replaced = 0;
	if (place->news == PLACE_TOO_LARGE)
		agent_refuse_size(a, place);
	else if (place->news == PLACE_ORDER)
		verdict = agent_take(a, place->text.data, place->text.len, place);
	if (verdict == VERDICT_LATER || verdict == VERDICT_STATE)
		place->due_ns = now + AGAIN_NS;
	else
		place_forget(place, now);
}

static void agent_send_status(struct agent *a, const char *state)
{
	uint64_t now = now_ns(CLOCK_REALTIME) / NSEC_PER_SEC;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;

	status_put(&text, &a->status, state, now, a->spool.bytes);
	if (!buf_string(&text))
		return;
	/* An agent that starts shows the same. */
	if (a->has_unsaved)
		agent_save_outcomes(a);
	a->status.has_changed = false;
	a->status.sent_ns = now_ns(CLOCK_BOOTTIME);
	if (mqtt_send_status(a->mqtt, text.data, text.len, &err) < 0)
		agent_log_error(LOG_WARNING, "no broker", 0, &err);
}

void agent_broker_step(struct agent *a, short revents)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	uint64_t now = now_ns(CLOCK_BOOTTIME);
	struct place *places;
	bool was_up;
	size_t count;

	if (!a->mqtt)
		return;
	was_up = mqtt_is_up(a->mqtt);
	if (mqtt_step(a->mqtt, revents, now, &err) < 0)
		agent_log_error(LOG_WARNING, "broker", 0, &err);
	/* The last will may be what the broker shows. */
	a->status.has_changed |= !was_up;
	places = mqtt_places(a->mqtt, &count);
	for (size_t i = 0; i < count; i++) {
		/* At once: the broker does not show it to this board's next life. */
		if (places[i].is_withdrawn)
			agent_withdraw(a, &places[i]);
		places[i].is_withdrawn = false;
		if (places[i].news != PLACE_NONE && now >= places[i].due_ns)
			agent_take_news(a, &places[i], now);
	}
	if (a->status.has_changed && mqtt_is_up(a->mqtt) &&
	    now >= a->status.sent_ns + STATUS_GAP_NS)
		agent_send_status(a, "alive");
}

uint64_t agent_broker_next_ns(const struct agent *a)
{
	const struct place *places;
	uint64_t next;
	size_t count;

	if (!a->mqtt)
		return UINT64_MAX;
	next = mqtt_next_ns(a->mqtt);
	if (a->status.has_changed && mqtt_is_up(a->mqtt))
		next = MIN(next, a->status.sent_ns + STATUS_GAP_NS);
	places = mqtt_places(a->mqtt, &count);
	for (size_t i = 0; i < count; i++)
		if (places[i].news != PLACE_NONE)
			next = MIN(next, places[i].due_ns);
	return next;
}

void agent_broker_end(struct agent *a)
{
	if (!a->mqtt)
		return;
	if (mqtt_is_up(a->mqtt))
		agent_send_status(a, "stopped");
	mqtt_end(a->mqtt);
}
