/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Without libmosquitto, no policy has a broker: nothing but mqtt_free() is called. */
#include "agent/mqtt.h"

int mqtt_new(struct mqtt **ret _unused_, const struct policy *policy _unused_, struct error *err)
{
	return error_set(err, -EOPNOTSUPP, "this agent is built without libmosquitto");
}

struct mqtt *mqtt_free(struct mqtt *m _unused_)
{
	return NULL;
}

int mqtt_fd(const struct mqtt *m _unused_, short *ret_events)
{
	*ret_events = 0;
	return -1;
}

uint64_t mqtt_next_ns(const struct mqtt *m _unused_)
{
	return UINT64_MAX;
}

int mqtt_step(struct mqtt *m _unused_, short revents _unused_, uint64_t now _unused_,
	      struct error *err _unused_)
{
	return 0;
}

bool mqtt_is_up(const struct mqtt *m _unused_)
{
	return false;
}

struct mqtt_counts mqtt_counts(const struct mqtt *m _unused_)
{
	return (struct mqtt_counts){ 0 };
}

struct place *mqtt_places(struct mqtt *m _unused_, size_t *ret_count)
{
	*ret_count = 0;
	return NULL;
}

int mqtt_send_status(struct mqtt *m _unused_, const char *text _unused_, size_t len _unused_,
		     struct error *err _unused_)
{
	return 0;
}

void mqtt_end(struct mqtt *m _unused_)
{
}
