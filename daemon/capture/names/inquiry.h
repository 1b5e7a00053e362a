/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Questions about processes, each of which may keep the one who asks waiting: inquiry.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define INQUIRY_MAX 128

struct inquiry_kind {
	/* Runs in a thread. process: the folder in procfs. NULL: no answer. */
	void *(*ask)(int process, bool all);
	void (*discard)(void *answer);
};

struct inquiry;

struct inquiry *inquiry_new(const struct inquiry_kind *kind, bool all);
/* Before inquiry_begin(). Takes the descriptor; not with -E2BIG: it has INQUIRY_MAX questions. */
int inquiry_add(struct inquiry *i, int process, uid_t uid);
/* A thread asks. kind and what it uses must stay for ever. */
void inquiry_begin(struct inquiry *i);
/*
 * Waits for its end, for `ns` at most. True: it is over. UINT64_MAX: waits no longer than all users
 * may keep it waiting (inquiry.c says how long), as long as its thread gets the CPU.
 */
bool inquiry_wait(struct inquiry *i, uint64_t ns);
/* Once it is over: the answer of the n-th question, which the caller owns from now on. */
void *inquiry_take(struct inquiry *i, size_t n);
/* How many questions were not asked to their end. */
size_t inquiry_unanswered(const struct inquiry *i);
struct inquiry *inquiry_free(struct inquiry *i);
