/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program of only_if: an administrator's own, which says whether the board may work now. Its
 * one argument is the question; nothing of an order reaches it. Exit status 0 means yes. All else
 * means no, and it is asked again after a while: another status, a program that does not end in
 * time, one that others can change.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/policy.h"

struct hook {
	const char *question; /* "record" or "upload" */
	pid_t pid;	      /* 0: it does not run */
	uint64_t deadline_ns; /* CLOCK_BOOTTIME, as the others: the agent kills it then */
	bool is_late;	      /* it exceeded its time */
	uint64_t next_ns;     /* it is not asked before */
	uint64_t yes_ns;      /* until then one piece of work may begin; 0: none */
	bool said_no;	      /* the last time */
	uint64_t denials;     /* answers that were not yes */
};

/* Checks that the program can be run, and that others than owner can't change it. */
int hook_check(const char *path, uid_t owner, struct error *err);

/*
 * True: a piece of work may begin now, and the next one asks again. Otherwise the program was
 * started, runs already, or said no not long ago. No program: always true.
 */
bool hook_allows(struct hook *hook, const struct policy *policy, uint64_t now_ns);
/* Notes the answer of a program that has ended, and ends one that takes too long. */
void hook_step(struct hook *hook, const struct policy *policy, uint64_t now_ns);
/* CLOCK_BOOTTIME: when work that is due at due_ns needs the next call. */
uint64_t hook_next_ns(const struct hook *hook, uint64_t due_ns);
/* Ends the program. */
void hook_stop(struct hook *hook);
