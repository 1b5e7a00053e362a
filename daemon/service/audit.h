/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the journal keeps for those who ask later: who recorded what and how long, what was refused
 * to whom, what was lost. Each has a MESSAGE_ID, which systemd/traced.catalog explains, and fields:
 * SESSION, CLIENT_UID, CLIENT_PID, CLIENT_COMM, and of a recording that ended ELAPSED_USEC, EVENTS,
 * LOST, BYTES, REASON. Users are told by number: to look up their names may mean to ask a network.
 */
#pragma once

#include "daemon/service/connection.h"
#include "daemon/service/session.h"

#define AUDIT_STARTED "b80e1af434d045ba8f095a86eee018a6"
#define AUDIT_ENDED "0f6da06ef77e4e4bb3b46a6d7ef7399b"
#define AUDIT_REFUSED "95f84be9c6a94b09b747d6084164a788"
#define AUDIT_LOST "e55acf2c11ec43df86caa14af9fba986"
#define AUDIT_CUT_SHORT "6e2a5e6e4b8c49e495377c72b1f0aa61"
#define AUDIT_LEFTOVER "2bb3761779444ccba86512b7a0e1b0a6"
#define AUDIT_PUT_BACK "70f28695a9c84ebf80aab3ca428ee31b"
#define AUDIT_EXPORT_FAILED "4ec0617951624214a3a71e3b31ca5f5c"
#define AUDIT_CONFIGURATION "d4763e03935a4f09b614e10e67080811"

/* The name that a process has chosen for itself; *ret is "?" where that can't be read. */
void audit_comm(const char *proc, pid_t pid, char ret[static 32]);

/* It records from now on. */
void audit_started(const struct session *s);
const char *audit_reason(enum capture_end reason);
/* It did until now; s->last is what became of it. how: "stopped", for programs too. */
void audit_ended(const struct session *s, const char *how);
/*
 * Whether a refusal of this user's may be written down: so many in a while each, that none of them
 * hides another's.
 */
bool audit_refusal_passes(uid_t uid);
/* A request was refused for want of rights or within a limit; says no more than so much of it. */
void audit_refused(const struct connection *c, const struct error *err);
