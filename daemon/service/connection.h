/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One client: frames in, replies out. Whatever it sends, or leaves unread, costs bounded memory
 * and harms only itself.
 */
#pragma once

#include "control/frame.h"
#include "daemon/service/manager.h"

struct connection {
	TAILQ_ENTRY(connection) list;
	struct manager *manager;
	int fd; /* owned */
	struct frame_io io;
	struct loop_source *source, *flush, *hello_timer;
	uid_t uid;
	pid_t pid;
	bool greeted;	    /* Hello was received */
	unsigned in_flight; /* jobs that still have to reply */
	int failed;	    /* negative errno: drop the client in the loop's next round */
};

#define CONNECTION_REQUEST_MAX (256U << 10) /* bytes of one request */
#define CONNECTION_IN_FLIGHT_MAX 32
#define CONNECTION_HELLO_S 10

int connection_new(struct connection **ret, struct manager *m, int fd, struct error *err);
/* Also notifies the client's sessions and jobs. */
struct connection *connection_free(struct connection *c);
DEFINE_CLEANUP_FUNC(struct connection *, connection_free);

/* Queues a reply; never frees the connection. NULL: no client, does nothing. */
void connection_reply(struct connection *c, uint64_t request_id, Traced__Control__Reply *reply);
/* Sends what the socket accepts now; on_flush handles errors later. */
void connection_flush(struct connection *c);
void connection_reply_error(struct connection *c, uint64_t request_id, const struct error *err);
