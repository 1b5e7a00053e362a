/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One event's raw bytes, as in the ring buffer. */
#pragma once

#include <stdint.h>

struct record {
	uint64_t ts;	     /* by the recording's trace clock: ns, except for counter clocks */
	const uint8_t *data; /* borrowed: valid while its sub-buffer is loaded */
	uint32_t len;	     /* bytes */
};
