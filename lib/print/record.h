/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One event's raw bytes, as they lie in the ring buffer. */
#pragma once

#include <stdint.h>

struct record {
	uint64_t ts;	     /* of the recording's trace clock: ns for all clocks but counters */
	const uint8_t *data; /* borrowed: valid while its sub-buffer is loaded */
	uint32_t len;	     /* bytes */
};
