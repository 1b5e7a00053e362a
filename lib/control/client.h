/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The client's end of the control socket. Blocking, one thread at a time. */
#pragma once

#include "base/error.h"
#include "control/frame.h"
#include "proto/control.pb-c.h"

struct control_client;

/*
 * Connects and shakes hands. -ENOENT, -ECONNREFUSED: no daemon; -EACCES: not
 * for this user; -EPROTO: versions that don't understand each other. Each with a hint.
 */
int control_client_connect(struct control_client **ret, const char *socket_path, struct error *err);
/* The same on a socket that is connected already; takes fd over. */
int control_client_adopt(struct control_client **ret, int fd, struct error *err);
struct control_client *control_client_free(struct control_client *c);
DEFINE_CLEANUP_FUNC(struct control_client *, control_client_free);

/* To be polled for input. */
int control_client_fd(const struct control_client *c);

/* Sends a request (its id is filled in and returned, above 0), with descriptors, which stay ours.
 */
int64_t control_client_send(struct control_client *c, Traced__Control__Request *request,
			    const int *fds, size_t fd_count, struct error *err);
/*
 * The next reply to any request; *ret to be freed with
 * traced__control__reply__free_unpacked. timeout_ms -1: waits. 1: got one; 0:
 * timed out; -ECONNRESET: the daemon is gone.
 */
int control_client_receive(struct control_client *c, int timeout_ms, Traced__Control__Reply **ret,
			   struct error *err);
/* Makes err of the error that a reply carries. Returns -err->code. */
int control_error(const Traced__Control__Error *e, struct error *err);
/*
 * Send and wait for that request's reply; replies to others are kept for
 * control_client_receive. A reply that carries an error becomes err.
 */
int control_client_call(struct control_client *c, Traced__Control__Request *request, const int *fds,
			size_t fd_count, Traced__Control__Reply **ret, struct error *err);
