/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Applications' marks in the daemon's loop: received at the clients' priority, moved to the
 * recordings at every tick. If the socket is not available, the daemon records without marks.
 */
#pragma once

#include "daemon/service/manager.h"
#include "daemon/service/session.h"

/* Listens beside the control socket. */
void marking_open(struct manager *m);
void marking_close(struct manager *m);
/* Applies the current configuration. */
void marking_reload(struct manager *m);

/* Starts, or ends, adding marks to the session's recording. */
void marking_begin(struct session *s);
void marking_end(struct session *s);
