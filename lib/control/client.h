/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The client side of the control socket. Blocking; one thread at a time. */
#pragma once

#include "base/error.h"
#include "control/frame.h"
#include "proto/control.pb-c.h"

struct control_client;

/*
 * Connects and exchanges versions. Errors, each with a hint: -ENOENT, -ECONNREFUSED: no daemon;
 * -EACCES: no permission; -EPROTO: incompatible versions.
 */
int control_client_connect(struct control_client **ret, const char *socket_path, struct error *err);
/* Like control_client_connect(), on a connected socket. Owns fd from then on, also on failure. */
int control_client_adopt(struct control_client **ret, int fd, struct error *err);
struct control_client *control_client_free(struct control_client *c);
DEFINE_CLEANUP_FUNC(struct control_client *, control_client_free);

/* The descriptor to poll for input. */
int control_client_fd(const struct control_client *c);

/* Sends a request and sets its id. The caller keeps the descriptors. Returns the id, above 0. */
int64_t control_client_send(struct control_client *c, Traced__Control__Request *request,
			    const int *fds, size_t fd_count, struct error *err);
/*
 * Receives the next reply to any request. The caller frees *ret with
 * traced__control__reply__free_unpacked(). timeout_ms -1: no timeout. Returns 1, or 0 on timeout.
 * -ECONNRESET: the daemon closed the connection.
 */
int control_client_receive(struct control_client *c, int timeout_ms, Traced__Control__Reply **ret,
			   struct error *err);
/* Converts a reply's error to err. Returns -err->code. */
int control_error(const Traced__Control__Error *e, struct error *err);
/*
 * Sends a request and waits for its reply. Keeps replies to other requests for
 * control_client_receive(). An error in the reply becomes err.
 */
int control_client_call(struct control_client *c, Traced__Control__Request *request, const int *fds,
			size_t fd_count, Traced__Control__Reply **ret, struct error *err);
