/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdint.h>

/* MemAvailable of PROC/meminfo in bytes: what the machine can give without swapping; 0: unknown. */
uint64_t meminfo_available(const char *proc);
/* MemTotal in bytes: all memory of the machine but what the kernel has reserved; 0: unknown. */
uint64_t meminfo_total(const char *proc);
