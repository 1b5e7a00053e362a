/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The calls that can fail in each process; tests/integration/faults.py reads these lists, too. */
#pragma once

#include <stdint.h>

/* clang-format off */
#define FAULT_PROCESS_LIST(X) X(tracectl) X(traced) X(exporter)
#define FAULT_CALL_LIST(X)                                                                         \
	X(open) X(read) X(write) X(splice) X(ftruncate) X(fallocate) X(fsync) X(stat) X(lseek)     \
	X(rename) X(link) X(mkdir) X(mmap) X(malloc) X(pipe) X(socket) X(sendmsg) X(recvmsg)       \
	X(poll) X(epoll) X(fork)
/* clang-format on */

#define FAULT_ENUM(name) FAULT_##name,
#define FAULT_NAME(name) #name,
enum fault_process { FAULT_PROCESS_LIST(FAULT_ENUM) FAULT_PROCESSES };
enum fault_call { FAULT_CALL_LIST(FAULT_ENUM) FAULT_CALLS };
static const char *const fault_processes[] = { FAULT_PROCESS_LIST(FAULT_NAME) };
static const char *const fault_calls[] = { FAULT_CALL_LIST(FAULT_NAME) };

struct fault_state {
	uint32_t failed; /* one did */
	uint32_t counts[FAULT_PROCESSES][FAULT_CALLS];
};
