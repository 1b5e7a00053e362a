/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A helper process: this program once more, with an internal option and with
 * no descriptor but stderr and those given, which become 3, 4 and so on; the
 * next one is a pipe for its result, one ExportResult message. It dies with
 * the daemon. Never blocks the loop; SIGCHLD must be blocked in the process.
 *
 * Or a service of the service manager, with rights that it gives and that the
 * daemon then needs not to have: each connection to its socket (SOCK_SEQPACKET)
 * starts a process, which gets the same as one message and calls child_serve().
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "daemon/service/loop.h"
#include "proto/control.pb-c.h"

#define CHILD_FDS_MAX 21
#define CHILD_FIRST_FD 3

struct child_spec {
	const char *what;	 /* "exporter": for messages */
	const char *const *argv; /* NULL-terminated, without the program's name */
	int fds[CHILD_FDS_MAX];	 /* borrowed */
	size_t fd_count;
	const char *service; /* path of its socket; NULL: a process of our own */
};

/* result is never NULL, and the callee's; its error tells of a child that crashed, too. */
typedef void (*child_done_t)(void *userdata, Traced__Control__ExportResult *result);

struct child;

int child_spawn(struct child **ret, struct loop *loop, const struct child_spec *spec,
		child_done_t done, void *userdata, struct error *err);
/* Kills it if it still lives; done is not called then. */
struct child *child_free(struct child *c);
DEFINE_CLEANUP_FUNC(struct child *, child_free);

/* In a service's process: takes what it is to do, calls run; returns an exit status. */
int child_serve(int connection, int (*run)(int argc, char **argv));
/* In the child: the end. Writes the result to result_fd; returns an exit status. */
int child_finish(int result_fd, const Traced__Control__ExportResult *result);
