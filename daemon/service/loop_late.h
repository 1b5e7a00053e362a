/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Logs callbacks of the loop that take long: all clients wait meanwhile. */
#pragma once

#include <stdint.h>

/* For the loops: before a callback. Returns when it began. */
uint64_t loop_late_begin(void);
/* After it. */
void loop_late_end(uint64_t began_ns);
/* Any other thread, now and then: logs a callback that takes long while it runs. */
void loop_late_look(void);
