/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a client can ask for: one function each, in a table. */
#pragma once

#include "daemon/service/connection.h"

/*
 * Does what the request says, and replies now or lets a job reply. fds came
 * with the request; those that are kept become -EBADF. May change any
 * session; never frees c.
 */
void verb_dispatch(struct connection *c, const Traced__Control__Request *request, int *fds,
		   size_t fd_count);
