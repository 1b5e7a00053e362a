/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "exchange.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/io.h"
#include "phc.h"

#define ASK_SOON_NS (5 * NSEC_PER_MSEC)
#define ASK_NS (100 * NSEC_PER_MSEC)

void exchange_deinit(struct exchange *e)
{
	for (size_t i = 0; i < TIE_KINDS; i++)
		free(e->ties[i].items);
	*e = EXCHANGE_INIT(-EBADF, 0);
}

void exchange_ask(struct exchange *e, char order[EXCHANGE_ORDER_BYTES])
{
	e->asked = ++e->asks;
	snprintf(order, EXCHANGE_ORDER_BYTES, "clock %" PRIu64 "\n", e->asked);
	e->ask_at = now_ns(CLOCK_MONOTONIC) + (e->asks < EXCHANGES_FIRST ? ASK_SOON_NS : ASK_NS);
	phc_read(e->phc, &e->phc_before);
	e->asked_ns = now_ns(CLOCK_BOOTTIME);
}

/* Our other clocks are read after the answer, so that the exchange stays short. */
static int exchange_add_ties(struct exchange *e, uint64_t back, const struct true_time *far,
			     const struct true_time *far_phc)
{
	struct host_tie tie = { .far = far->boot,
				.near = e->asked_ns + (back - e->asked_ns) / 2,
				.bound = (back - e->asked_ns + 1) / 2 };
	struct true_time near;
	int r = host_ties_add(&e->ties[TIES_EXCHANGES], &tie);

	if (far_phc->utc && r == 0) {
		phc_read(e->phc, &near);
		if (phc_tie(&tie, &e->phc_before, &near, far_phc, e->phc_bound))
			r = host_ties_add(&e->ties[TIES_PHC], &tie);
	}
	if (far->utc && r == 0) {
		true_time_read(&near);
		if (true_time_tie(&tie, &near, far))
			r = host_ties_add(&e->ties[TIES_UTC], &tie);
	}
	return r;
}

/* 0: the line is an answer; 1: it is none. */
static int exchange_scan(const char *line, uint64_t *number, struct true_time *far,
			 struct true_time *phc)
{
	int count = sscanf(line,
			   "@clock %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			   " %" SCNu64 " %" SCNu64,
			   number, &far->boot, &far->utc, &far->bound, &phc->boot, &phc->utc,
			   &phc->bound);

	far->utc = count < 4 ? 0 : far->utc;
	phc->utc = count < 7 ? 0 : phc->utc;
	return count < 2;
}

int exchange_take_line(struct exchange *e, const char *line)
{
	const struct host_ties *ties = &e->ties[TIES_EXCHANGES];
	struct true_time far = { 0 }, phc = { 0 };
	uint64_t number, back;

	if (exchange_scan(line, &number, &far, &phc))
		return 1;
	back = now_ns(CLOCK_BOOTTIME);
	if (!e->asked || number != e->asked)
		return 0;
	e->asked = 0;
	/* Clocks do not stand still or go back between two questions. */
	if (ties->count && far.boot <= ties->items[ties->count - 1].far)
		return -EBADMSG;
	return exchange_add_ties(e, back, &far, &phc);
}
