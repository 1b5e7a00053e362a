/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds sample events by the names that perf(1) uses. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define SAMPLE_EVENT_DEFAULT "cpu-clock"

struct sample_event {
	uint32_t type; /* enum perf_type_id */
	uint64_t config;
};

/* name: "cycles", "cpu-clock", "r01c2" (raw, hexadecimal) ... -EINVAL: unknown. */
int sample_event_find(const char *name, struct sample_event *ret, struct error *err);
