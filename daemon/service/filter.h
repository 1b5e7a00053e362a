/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The system calls that decoding needs, by libseccomp: what is open can be read
 * and written, memory and threads can be had; whatever makes a descriptor, a
 * process or executable memory, or looks at other processes, fails with EPERM.
 */
#pragma once

#include "base/error.h"

/* For good, for the calling thread and those that it makes. Nothing where kernel or build lack it.
 */
int filter_enter(struct error *err);
