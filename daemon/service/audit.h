/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The audit log in the journal: who recorded what and for how long, what was refused, what was
 * lost. Each entry has a MESSAGE_ID, which systemd/traced.catalog explains, and the fields
 * SESSION, CLIENT_UID, CLIENT_PID and CLIENT_COMM. The end of a recording adds ELAPSED_USEC,
 * EVENTS, LOST, BYTES and REASON. Users appear as numbers: looking up a name may query the
 * network.
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

/* Reads the name that a process gave itself; *ret is "?" if that cannot be read. */
void audit_comm(const char *proc, pid_t pid, char ret[static 32]);

/* Logs the start of a recording. */
void audit_started(const struct session *s);
const char *audit_reason(enum capture_end reason);
/* Logs the end of a recording, with the counts in s->last. how: "stopped", also for programs. */
void audit_ended(const struct session *s, const char *how);
/* Logs a request refused for lack of rights or by a limit, within the user's rate limit. */
void audit_refused(const struct connection *c, const struct error *err);
/* The same for a recording that was refused while it was armed: its events or filters. */
void audit_not_armed(const struct session *s, const struct error *err);
