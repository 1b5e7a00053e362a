/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread of the process that writes files (framed.h). It says on standard error that a write
 * hangs: the file system does not answer, such as NFS without its server or a frozen one. No signal
 * ends such a wait, so the writing thread can't say it.
 */
#pragma once

#include "output/framed.h"

/* Without it, a write that hangs is just not reported. path: as it was typed; both are borrowed. */
void framed_watch(struct framed_report *report, const char *path);

/* The writing thread has begun or ended something that may hang. */
void framed_busy(struct framed_report *report, bool busy);
/* Seconds since it began that; 0: less than one, or it waits for data. */
unsigned framed_busy_s(const struct framed_report *report);
