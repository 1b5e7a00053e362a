/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Applications' marks in the daemon's loop: they come at the clients' priority, and go
 * to the recordings every tick. A daemon that can't have the socket records without.
 */
#pragma once

#include "daemon/service/manager.h"
#include "daemon/service/session.h"

/* Listens beside the control socket. */
void marking_open(struct manager *m);
void marking_close(struct manager *m);
/* What the configuration says now. */
void marking_reload(struct manager *m);

/* The session's recording gets what is marked from now on; up to now. */
void marking_begin(struct session *s);
void marking_end(struct session *s);
