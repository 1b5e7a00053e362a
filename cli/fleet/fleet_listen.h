/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages that a broker retains. It sends them at once, and does not say which is the last one. So
 * we publish a mark on a topic of our own, after we subscribed to both: it comes behind them.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* The bound without -t. */
#define LISTEN_NS (10 * NSEC_PER_SEC)

struct listening {
	const char *broker, *fleet; /* mqtts://HOST[:PORT] */
	const char *topic;	    /* perhaps with a + */
	bool is_one;		    /* the first message is enough */
	uint64_t most_ns;	    /* how long to listen; 0: LISTEN_NS */
	size_t max;		    /* bytes of all lines */
};

/* Without a slash at its end. */
int broker_put_url(const char *broker, const char *topic, struct buf *ret, struct error *err);
/* Gives a reason to the exit status of one of mosquitto's clients, and a hint. */
int broker_explain(int r, const char *program, struct error *err);
/*
 * Appends a line for each message: TOPIC, a blank, and the content in hexadecimal digits. 1: these
 * are all; 0: the time was over before the mark came.
 */
int broker_listen(const struct listening *listening, struct buf *ret, struct error *err);
