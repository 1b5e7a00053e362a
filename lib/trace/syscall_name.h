/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of system calls by number: the events of raw_syscalls have only numbers. The tables are
 * libseccomp's, and end at its version. Calls of 32-bit programs on a 64-bit machine are named by
 * the machine's own table, as these events do not tell them apart.
 */
#pragma once

#include <stdint.h>

/* machine: as of uname(2). Returns the table for syscall_name(); 0: none. */
uint32_t syscall_table(const char *machine);

/* NULL: unknown, or no memory. The caller frees it. Any thread. */
char *syscall_name(uint32_t table, uint64_t nr);
