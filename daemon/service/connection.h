/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One client: frames in, replies out. Whatever it sends, or leaves unread, costs bounded memory
 * and harms only itself.
 */
#pragma once

#include "control/frame.h"
#include "daemon/service/manager.h"

struct connection {
	TAILQ_ENTRY(connection) list; /* in manager->connections; once over, in over.connections */
	TAILQ_ENTRY(connection) turn; /* in manager->turns, if it waits */
	struct manager *manager;
	struct job_list jobs; /* of this client's requests */
	int fd;		      /* owned */
	struct frame_io io;
	struct loop_source *source, *flush, *hello_timer;
	uid_t uid, account; /* account: whose turn it is (accounts.h) */
	pid_t pid;
	bool greeted;	      /* Hello was received */
	bool waits;	      /* for its turn */
	bool left;	      /* it reads no replies any more, and is over soon */
	unsigned last_served; /* requests of one that left */
	unsigned in_flight;   /* jobs that still have to reply */
	int failed;	      /* negative errno: drop the client in the loop's next round */
};

#define CONNECTION_REQUEST_MAX (256U << 10) /* bytes of one request */
#define CONNECTION_IN_FLIGHT_MAX 32
#define CONNECTION_HELLO_S 10

int connection_new(struct connection **ret, struct manager *m, int fd, struct error *err);
/* For manager_reap(): releases what is left of a connection that is over. */
struct connection *connection_free(struct connection *c);
DEFINE_CLEANUP_FUNC(struct connection *, connection_free);
/* Closes the connection, and notifies the client's sessions and jobs. */
void connection_over(struct connection *c);

/* Handles one request: it is this connection's turn. */
void connection_serve(struct connection *c);
/* Queues a reply. NULL: no client, does nothing. */
void connection_reply(struct connection *c, uint64_t request_id, Traced__Control__Reply *reply);
/* Sends what the socket accepts now; connection_on_flush() handles errors later. */
void connection_flush(struct connection *c);
void connection_reply_error(struct connection *c, uint64_t request_id, const struct error *err);
