/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * MQTT by the programs mosquitto_pub and mosquitto_sub, whose own files of options have the
 * certificates. Topics: docs/fleet.md. broker: mqtts://HOST[:PORT].
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "fleet_message.h"

struct board_statuses {
	struct board_status *items; /* owned */
	size_t count, refused;	    /* refused: messages that are none */
	bool is_cut;		    /* the time was over: there may be more */
};
void board_statuses_deinit(struct board_statuses *statuses);
#define _cleanup_board_statuses_ _cleanup_(board_statuses_deinit)

/* Appends the topic of a group's orders; group NULL: of all boards. */
void broker_put_topic(const char *fleet, const char *group, struct buf *out);
/* Publishes the file's content as the order of a topic; fd < 0: withdraws what is there. */
int broker_publish(const char *broker, const char *topic, int fd, struct error *err);
/*
 * Asks for the order of a topic; none: ret stays empty. 0: the time was over, so there may be one;
 * 1 otherwise.
 */
int broker_order(const char *broker, const char *fleet, const char *topic, struct buf *ret,
		 struct error *err);
/*
 * Asks for the status of each board. outcome is empty if it says nothing of the order. most_ns: how
 * long to listen; 0: the default.
 */
int broker_statuses(const char *broker, const char *fleet, uint64_t order, uint64_t most_ns,
		    struct board_statuses *ret, struct error *err);
