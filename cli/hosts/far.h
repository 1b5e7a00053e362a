/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One host of `tracectl -H HOST record`: a process whose far end is `tracectl record --control`
 * (orders.h). It gets orders and sends its capture, answers, and messages for people.
 */
#pragma once

#include <poll.h>
#include <time.h>

#include "base/io.h"
#include "exchange.h"
#include "far_pack.h"
#include "host.h"
#include "push.h"

#define FAR_LINE_BYTES 1024
/* Bytes by which a host shows that it still sends. */
#define FAR_HEARD_BYTES (64U << 10)

enum far_state { FAR_ARMING, FAR_ARMED, FAR_RECORDING, FAR_ENDED };

struct far {
	const struct host_name *name;
	struct host_process process;
	enum far_state state;
	int file; /* the capture */
	uint64_t bytes;
	/* NULL: it comes as it is */
	struct far_unpack *unpack;
	char line[FAR_LINE_BYTES];
	size_t line_len;
	unsigned messages;
	struct push push;
	struct word_list *told;	    /* messages that were printed, of all hosts */
	uint64_t here_ns, armed_ns; /* CLOCK_MONOTONIC; 0: not yet */
	/* After "stop": the last time that FAR_HEARD_BYTES were complete, and the bytes then. */
	uint64_t heard_ns, heard_bytes;
	bool slow_told;
	struct exchange clock;
	bool failed;
	bool lacks; /* its recorder says that something is missing */
};

void far_deinit(struct far *f);

static inline uint64_t far_now(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

/* Prints why, with the host's name. What failed before is not printed again. */
void far_fail(struct far *f, const char *fmt, ...) _printf_(2, 3);
/* Ends the way to the host. The far recorder ends with its orders. */
void far_drop(struct far *f);
void far_order(struct far *f, const char *order);
/* Asks for the host's clock. */
void far_ask(struct far *f);
/* Reads answers and messages. */
void far_read_lines(struct far *f);

/* Whether some of the capture is here and waits for far_move_data(). */
bool far_is_pending(const struct far *f);
/* Descriptors of a host: messages, capture, and the pipe for a program. */
#define FAR_FDS 3
void far_poll(const struct far *f, struct pollfd *ret);
/* piece: FAR_PIECE bytes. */
void far_move_data(struct far *f, const struct pollfd *ready, char *piece);
