/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What samples can be taken by, in the words of perf(1). */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define SAMPLE_EVENT_DEFAULT "cpu-clock"

struct sample_event {
	uint32_t type; /* enum perf_type_id */
	uint64_t config;
};

/* "cycles", "cpu-clock", "r01c2" (raw, in hexadecimal) ... -EINVAL: none of them. */
int sample_event_find(const char *name, struct sample_event *ret, struct error *err);
