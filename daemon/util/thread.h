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

/* Threads that write to neighbours at a time would wait for each other's caches. */
#define CACHE_LINES 128
/*
 * Zeros on cache lines of their own: for what one thread writes all the time, or reads while others
 * write. NULL: no memory. To be given to free().
 */
void *cache_lines_new(size_t size);
