/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Logs callbacks of the loop that take long: all clients wait meanwhile. For the loops only. */
#pragma once

#include <stdint.h>

/* Before a callback. Returns when it began. */
uint64_t loop_late_begin(void);
/* After it. */
void loop_late_end(uint64_t began_ns);
