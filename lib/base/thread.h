/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <pthread.h>
#include <stddef.h>

/* A thread with a stack of so many bytes; signals are the caller's. 0 or -errno. */
int thread_begin(pthread_t *ret, size_t stack, void *(*run)(void *userdata), void *userdata);
/* The CPUs that the calling thread may use; at most `most`. */
unsigned thread_cpus(unsigned most);
/* The calling thread goes on elsewhere, if it may. */
void thread_leave_cpu(int cpu);

/* In a loop that looks until another thread has done something; costs the CPU's other half least.
 */
#if defined(__x86_64__) || defined(__i386__)
#define thread_spin_pause() __builtin_ia32_pause()
#elif defined(__aarch64__) || (defined(__arm__) && __ARM_ARCH >= 7)
#define thread_spin_pause() __asm__ volatile("yield" ::: "memory")
#else
#define thread_spin_pause() __asm__ volatile("" ::: "memory")
#endif

/* Threads that write to neighbours at a time would wait for each other's caches. */
#define CACHE_LINES 128
/*
 * Zeros on cache lines of their own: for what one thread writes all the time, or reads while others
 * write. NULL: no memory. To be given to free().
 */
void *cache_lines_new(size_t size);
