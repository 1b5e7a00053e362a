/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The connection to a broker of MQTT 5, by libmosquitto without its thread: the caller polls the
 * descriptor. Nothing here looks into an order.
 *
 * The session outlives a connection by an hour, so a withdrawal meanwhile is not missed. Retained
 * orders come with each connection; struct place tells which are news. A broker that can't be
 * reached is asked again after growing waits, one that stops answering is noticed by keep-alive.
 */
#pragma once

#include <stdbool.h>

#include "agent/place.h"
#include "agent/policy.h"

struct mqtt;

struct mqtt_counts {
	uint64_t connections, failures;
};

/* policy: borrowed; it has a broker. */
int mqtt_new(struct mqtt **ret, const struct policy *policy, struct error *err);
struct mqtt *mqtt_free(struct mqtt *mqtt);

/* For poll(): the descriptor, or -1, and the events to wait for. */
int mqtt_fd(const struct mqtt *mqtt, short *ret_events);
/* CLOCK_BOOTTIME: the next call of mqtt_step(), if nothing happens before. */
uint64_t mqtt_next_ns(const struct mqtt *mqtt);
/*
 * Does what is due. revents: what poll() found. -EIO: there is no connection now; the next try is
 * postponed. -EACCES: the broker refuses a message.
 */
int mqtt_step(struct mqtt *mqtt, short revents, uint64_t now_ns, struct error *err);
/* True between the broker's consent and the loss of the connection. */
bool mqtt_is_up(const struct mqtt *mqtt);
struct mqtt_counts mqtt_counts(const struct mqtt *mqtt);

/* The topics of orders. */
struct place *mqtt_places(struct mqtt *mqtt, size_t *ret_count);
/* Sends the retained status, if the connection is up. */
int mqtt_send_status(struct mqtt *mqtt, const char *text, size_t len, struct error *err);
/* Says good-bye, so that the broker does not publish the last will. */
void mqtt_end(struct mqtt *mqtt);
