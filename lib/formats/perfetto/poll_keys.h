/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "marks/value.h"

/* Upstream's number of a name in /proc/meminfo or /proc/vmstat; 0: it has none. */
uint32_t pf_meminfo_key(struct text key);
uint32_t pf_vmstat_key(struct text key);
