/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arrows from calls that sent to receipts, as marks of the threads: a slice for the call, one for
 * the receipt, and a flow between them. Only what net_arrow_next() is certain of.
 */
#pragma once

#include "base/error.h"
#include "report/net_traffic.h"

#define NET_ARROWS_MAX (1U << 16)

/*
 * After the last machine: fills in net_traffic.arrows. between: also those from one machine to
 * another. Returns how many there are, or -errno.
 */
int net_arrows_make(struct net_traffic *t, bool between, struct error *err);
