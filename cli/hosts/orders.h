/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The far side of `tracectl -H HOST record`: takes orders, a line each, from standard input, and
 * answers with lines on standard error. docs/hosts.md has the lines. The capture goes to standard
 * output.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

/* Bytes of an order. A longer line ends the orders, as their end does. */
#define ORDER_MAX 64

struct orders {
	int fd;	 /* -EBADF: none, or they ended */
	int phc; /* the PTP clock that answers have, too; -EBADF: none */
	char line[ORDER_MAX];
	unsigned len;
	bool go;    /* the recording counts from now on */
	bool stop;  /* end it */
	bool quiet; /* who gives the orders says what is missing in the recording */
	bool gone;  /* nobody gives orders any more: nobody wants the recording */
};
#define ORDERS_INIT ((struct orders){ .fd = -EBADF, .phc = -EBADF })

/* Says that the program runs: what is left until @armed may take its time. */
void orders_greet(void);
/* Says that the recording runs, and waits for "go". -ECANCELED: another order came, or none. */
int orders_wait(struct orders *o, int signal_fd, struct error *err);
/* Takes what came. Clock readings are answered at once. */
void orders_take(struct orders *o);
