/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who is served next: users take turns, one request each, however many connections and subordinate
 * ids a user has.
 * Among a user's connections it is the one that waits longest.
 */
#pragma once

#include "daemon/service/manager.h"

int turns_init(struct turns *t, struct loop *loop);
void turns_deinit(struct turns *t);
/*
 * True if nobody waits or was served lately: the caller serves its connection at once. A turn takes
 * system calls, which are in the recordings.
 */
bool turns_at_once(struct turns *t, uid_t account);
/* The connection has something to read: it is served in its turn. */
void turns_wait(struct turns *t, struct connection *c);
/* The connection waits no more. */
void turns_leave(struct turns *t, struct connection *c);
