/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exchanges that tie a host's clock to ours: the host reads its clock between our question and its
 * answer. orders.h has the other side.
 */
#pragma once

#include "true_time.h"

/* Exchanges that come soon after one another, before the recording begins. */
#define EXCHANGES_FIRST 12
#define EXCHANGE_ORDER_BYTES 48

struct exchange {
	uint64_t asked;	   /* the number of the pending one; 0: none */
	uint64_t asked_ns; /* CLOCK_BOOTTIME */
	uint64_t asks;
	uint64_t ask_at; /* CLOCK_MONOTONIC: when the next one is due */
	struct host_ties ties[TIE_KINDS];
	int phc;		     /* borrowed descriptor of our PTP clock; negative: none */
	uint64_t phc_bound;	     /* ns: by how much it and the host's may differ */
	struct true_time phc_before; /* our PTP clock when we asked */
};
#define EXCHANGE_INIT(phc_, bound_) ((struct exchange){ .phc = (phc_), .phc_bound = (bound_) })
void exchange_deinit(struct exchange *e);

/* Begins one. order: a line to be sent at once. */
void exchange_ask(struct exchange *e, char order[EXCHANGE_ORDER_BYTES]);
/* 0: the line was an answer; 1: it is none; -EBADMSG: the host's clock goes back; -ENOMEM. */
int exchange_take_line(struct exchange *e, const char *line);
