/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Permissions: [users] of traced.conf, for everybody except root and the daemon's own user. The
 * socket's mode has already decided who may connect. Each refusal names what was refused, and the
 * key that would permit it.
 */
#pragma once

#include "daemon/service/start.h"

struct spool;

bool policy_trusts(uid_t uid);

/* May this user have one more connection? -EUSERS. */
int policy_check_client(const struct manager *m, uid_t uid, struct error *err);
/*
 * Checks a start against the user's limits and current use: -EPERM, -EUSERS, -EDQUOT. Adds to the
 * plan: the events' bounds, the kernel memory.
 */
int policy_check_start(struct start_plan *p, const struct manager *m, uid_t uid, struct error *err);
/*
 * Exports of running recordings that a user may have at once. Each has a process of its own, whose
 * memory counts as nobody's.
 */
#define LOOKS_MAX 8U
/* -EBUSY: so many of them run. */
int policy_check_looks(const struct manager *m, uid_t uid, struct error *err);
/* -EUSERS: too many of the account's exporters do not end (leaving.h). */
int policy_check_exporters(const struct manager *m, uid_t account, struct error *err);
/*
 * -EPERM: the output would contain kernel addresses. counts_only: the recording has histograms
 * alone, which the user may see.
 */
int policy_check_output(const struct manager *m, uid_t uid, const Traced__Control__Output *output,
			bool counts_only, struct error *err);

/*
 * Longest permitted recording; 0: no limit. *ret_section: the section of traced.conf with the
 * limit.
 */
uint64_t policy_duration_max(const struct manager *m, uid_t uid, const char **ret_section);
/* Bytes that stay free in the spool: users leave some for root's recordings. */
uint64_t policy_min_free(const struct manager *m, uid_t uid);
/* Maximum bytes of one stream; 0: no limit. */
uint64_t policy_stream_max(const struct manager *m, uid_t uid);
/*
 * True if this user's spooled bytes exceed percent of their limit. elsewhere: bytes of the user's
 * spool files that belong to no session and no job.
 */
bool policy_spool_exceeded(const struct manager *m, uid_t account, uint64_t elsewhere,
			   unsigned percent);
/*
 * True if a snapshot whose export failed may stay in the spool beside what the user keeps there.
 * policy_check_snapshot() knows the events' size only, not that of symbols and names.
 */
bool policy_may_keep(const struct manager *m, uid_t account, const struct spool *spool);
/* -EDQUOT: what the flight recorder's rings hold now would exceed its user's limit. */
int policy_check_snapshot(const struct session *s, struct error *err);
/* A session's or job's spool file of this user was closed and stays on disk. */
void policy_spool_kept(struct manager *m, uid_t account);
