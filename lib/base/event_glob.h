/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of events as people select them: a system, an event, or a glob of either or both. */
#pragma once

#include <stdbool.h>

/*
 * "sched" and "sched_sw*" match a system or an event, "sched:*" both parts; an empty part matches
 * all. A glob longer than 255 bytes before its colon matches nothing.
 */
bool event_glob_has(const char *glob, const char *system, const char *event);
