/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The requests that a client can make: one function each, in a table. */
#pragma once

#include "daemon/service/connection.h"

/*
 * Handles the request, and replies now or leaves it to a job. fds came with the request; those
 * that are kept become -EBADF. May change any session.
 */
void verb_dispatch(struct connection *c, const Traced__Control__Request *request, int *fds,
		   size_t fd_count);
