/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "exchange.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/io.h"
#include "true_time.h"

#define ASK_SOON_NS (5 * NSEC_PER_MSEC)
#define ASK_NS (100 * NSEC_PER_MSEC)

void exchange_deinit(struct exchange *e)
{
	free(e->ties.items);
	free(e->utc_ties.items);
	*e = (struct exchange){ 0 };
}

void exchange_ask(struct exchange *e, char order[EXCHANGE_ORDER_BYTES])
{
	e->asked = ++e->asks;
	snprintf(order, EXCHANGE_ORDER_BYTES, "clock %" PRIu64 "\n", e->asked);
	e->ask_at = now_ns(CLOCK_MONOTONIC) + (e->asks < EXCHANGES_FIRST ? ASK_SOON_NS : ASK_NS);
	e->asked_ns = now_ns(CLOCK_BOOTTIME);
}

static int exchange_add_ties(struct exchange *e, uint64_t back, const struct true_time *far)
{
	struct host_tie tie = { .far = far->boot,
				.near = e->asked_ns + (back - e->asked_ns) / 2,
				.bound = (back - e->asked_ns + 1) / 2 };
	struct true_time near;
	int r = host_ties_add(&e->ties, &tie);

	if (r < 0 || !far->utc)
		return r;
	true_time_read(&near);
	return true_time_tie(&tie, &near, far) ? host_ties_add(&e->utc_ties, &tie) : 0;
}

int exchange_take_line(struct exchange *e, const char *line)
{
	struct true_time far = { 0 };
	uint64_t number, back;
	int count = sscanf(line, "@clock %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &number,
			   &far.boot, &far.utc, &far.bound);

	if (count < 2)
		return 1;
	far.utc = count < 4 ? 0 : far.utc;
	back = now_ns(CLOCK_BOOTTIME);
	if (!e->asked || number != e->asked)
		return 0;
	e->asked = 0;
	/* Clocks do not stand still or go back between two questions. */
	if (e->ties.count && far.boot <= e->ties.items[e->ties.count - 1].far)
		return -EBADMSG;
	return exchange_add_ties(e, back, &far);
}
