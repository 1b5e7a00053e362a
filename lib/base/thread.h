/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads, and memory for data that one of them writes all the time. */
#pragma once

#include <pthread.h>
#include <stddef.h>

/*
 * Starts a thread with a stack of `stack` bytes and all signals blocked. Returns 0 or -errno.
 */
int thread_begin(pthread_t *ret, size_t stack, void *(*run)(void *userdata), void *userdata);
/* The number of CPUs that the calling thread may use, at most `most`. */
unsigned thread_cpus(unsigned most);
/* Moves the calling thread off this CPU, if it may run elsewhere. */
void thread_leave_cpu(int cpu);

/* Pauses a loop that waits for another thread, so that the other hyperthread runs faster. */
#if defined(__x86_64__) || defined(__i386__)
#define thread_spin_pause() __builtin_ia32_pause()
#elif defined(__aarch64__) || (defined(__arm__) && __ARM_ARCH >= 7)
#define thread_spin_pause() __asm__ volatile("yield" ::: "memory")
#else
#define thread_spin_pause() __asm__ volatile("" ::: "memory")
#endif

/* Least distance in bytes between data of different threads: writes to one cache line are slow. */
#define CACHE_LINES 128
/*
 * Zeroed memory on cache lines of its own, for data that one thread writes all the time. The caller
 * frees it with free(). NULL: out of memory.
 */
void *cache_lines_new(size_t size);
