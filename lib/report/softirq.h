/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of softirqs. */
#pragma once

#include "marks/value.h"

/* "TIMER", "NET_RX" and so on; "?" for an unknown number. */
struct text softirq_name(uint64_t vec);
