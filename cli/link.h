/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Connection to a daemon: the listening one; or, without one and as root, a private one that lives
 * as long as the link.
 */
#pragma once

#include "cli.h"
#include "control/client.h"

struct link {
	struct control_client *client;
	pid_t daemon;	/* pid of the private daemon, or 0 */
	bool unspooled; /* it keeps nothing on disk that could be recovered */
};

enum link_mode {
	LINK_LISTENING, /* require a listening daemon */
	LINK_OR_ROOT,	/* the same, but root can do without */
	LINK_PRIVATE_TOO,
	LINK_PRIVATE_FIRST, /* for root, even if one listens, unless --socket names it */
};

/* This program is traced, too: it starts itself as a private daemon. */
extern bool link_has_daemon;

int link_open(struct link *ret, const struct options *o, enum link_mode mode, struct error *err);
/* False: a daemon listens. True for -ENOENT and -ECONNREFUSED. */
bool link_no_daemon(int r);
/* Explains a lost connection (r and err of control_client_*); other errors stay. Returns r. */
int link_explain(const struct link *l, int r, struct error *err);
/* Also waits until a private daemon has cleaned up and ended. */
void link_deinit(struct link *l);
#define _cleanup_link_ _cleanup_(link_deinit)

/* As control_client_call(), with link_explain(). */
int link_call(struct link *l, Traced__Control__Request *request, const int *fds, size_t fd_count,
	      Traced__Control__Reply **ret, struct error *err);

/* Asks for the status of a session, or of all (NULL). *ret has it; free it. */
int link_status(struct link *l, const char *session, Traced__Control__Reply **ret,
		struct error *err);
/* Asks for the caller's recordings that failed exports left. */
int link_kept(struct link *l, Traced__Control__Reply **ret, struct error *err);
/* Has a session's recording discarded, and waits for that. */
int link_cancel(struct link *l, const char *session, struct error *err);
/*
 * Sends an Attach; the reply has *ret_id and comes when the session ends. output: what the stream
 * has, which goes into fd; NULL and -EBADF: none.
 */
int link_attach(struct link *l, const char *session, Traced__Control__Output *output, int fd,
		uint64_t *ret_id, struct error *err);

static inline void reply_freep(Traced__Control__Reply **reply)
{
	if (*reply)
		traced__control__reply__free_unpacked(*reply, NULL);
}
#define _cleanup_reply_ _cleanup_(reply_freep)

/* Triggers append this to the name of a session, for the one with their events. */
#define TRIGGERS_SUFFIX "-watch"
/* Longest name of a session with triggers. */
#define TRIGGERS_NAME_MAX (START_NAME_MAX - strlen(TRIGGERS_SUFFIX))

/* The session by name, or without a name the only session. Free *ret. The daemon checks names. */
int link_session(struct link *l, const char *name, char **ret, struct error *err);
