/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way to a daemon: the one that listens, or where none does and the caller
 * is root, a private one that lives as long as the link.
 */
#pragma once

#include "cli.h"
#include "control/client.h"

struct link {
	struct control_client *client;
	pid_t daemon; /* the private one, or 0 */
};

enum link_mode {
	LINK_LISTENING, /* only a daemon that outlives us will do */
	LINK_OR_ROOT,	/* the same, but root does without any */
	LINK_PRIVATE_TOO,
};

int link_open(struct link *ret, const struct options *o, enum link_mode mode, struct error *err);
/* Where no daemon listens (-ENOENT, -ECONNREFUSED) there is one: false. */
bool link_no_daemon(int r);
/* Says what a lost connection means (r, err of control_client_*); others stay. Returns r. */
int link_explain(const struct link *l, int r, struct error *err);
/* Also waits until a private daemon has tidied up and gone. */
void link_deinit(struct link *l);
#define _cleanup_link_ _cleanup_(link_deinit)

/* As control_client_call, with link_explain. */
int link_call(struct link *l, Traced__Control__Request *request, const int *fds, size_t fd_count,
	      Traced__Control__Reply **ret, struct error *err);

static inline void reply_freep(Traced__Control__Reply **reply)
{
	if (*reply)
		traced__control__reply__free_unpacked(*reply, NULL);
}
#define _cleanup_reply_ _cleanup_(reply_freep)

/*
 * The session that is meant: the named one, or without a name the only one
 * there is. *ret is to be freed. Names are checked by the daemon.
 */
int link_session(struct link *l, const char *name, char **ret, struct error *err);
