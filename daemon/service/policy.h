/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who may what: [users] of traced.conf, for everybody but root and the daemon's own user. The
 * socket's mode has decided who may ask at all. Each refusal names what was refused, and the key
 * that would allow it.
 */
#pragma once

#include "daemon/service/start.h"

bool policy_trusts(uid_t uid);

/* One more connection of this user: -EUSERS. */
int policy_check_client(const struct manager *m, uid_t uid, struct error *err);
/*
 * What a start asks for, and what its user has already: -EPERM, -EUSERS, -EDQUOT. Completes
 * the plan: the bounds of its events, its part of the kernel's memory.
 */
int policy_check_start(struct start_plan *p, const struct manager *m, uid_t uid, struct error *err);
/* -EPERM: it would hold the kernel's addresses. */
int policy_check_output(const struct manager *m, uid_t uid, const Traced__Control__Output *output,
			struct error *err);

/* Longest recording; 0: none. *ret_section: of traced.conf, where that is said. */
uint64_t policy_duration_max(const struct manager *m, uid_t uid, const char **ret_section);
/* Bytes of one stream; 0: no limit. */
uint64_t policy_stream_max(const struct manager *m, uid_t uid);
/*
 * True if what this user has in the spool is more than percent of what a user may have there.
 * elsewhere: bytes that no session has, as counted when the plan was checked.
 */
bool policy_spool_exceeded(const struct manager *m, uid_t uid, uint64_t elsewhere,
			   unsigned percent);
