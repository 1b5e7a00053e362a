/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decides whether this board follows an order. It reads neither clocks nor files. */
#pragma once

#include "agent/policy.h"
#include "agent/state.h"
#include "agent/verdict.h"
#include "fleet/order.h"

/*
 * Whether this board still follows an order that it has taken: its policy may be another one by
 * now.
 */
enum verdict judge_again(const struct order *order, const struct policy *policy, uint64_t now,
			 struct error *err);
/*
 * now: seconds since 1970. err gets the details of a refusal, with words that order_parse() has
 * checked.
 */
enum verdict judge_order(const struct order *order, const struct policy *policy,
			 const struct state *state, const unsigned char digest[DIGEST_SIZE],
			 uint64_t now, struct error *err);
