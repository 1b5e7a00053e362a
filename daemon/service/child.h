/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A helper process: this program again, with an internal option. It has only stderr and the given
 * descriptors, which become 3, 4 and so on, followed by a pipe for its result, one ExportResult
 * message. It dies with the daemon. Never blocks the loop; SIGCHLD must be blocked in the process.
 *
 * Alternatively a service of the service manager, whose rights the daemon then does not need. Each
 * connection to its socket (SOCK_SEQPACKET) starts a process, which receives the same data as one
 * message and calls child_serve().
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "daemon/service/loop.h"
#include "proto/control.pb-c.h"

#define CHILD_FDS_MAX 21
#define CHILD_FIRST_FD 3

struct child_spec {
	const char *what;	 /* "exporter": its name in messages */
	const char *const *argv; /* NULL-terminated, without the program name */
	int fds[CHILD_FDS_MAX];	 /* borrowed */
	size_t fd_count;
	const char *service; /* path of the service's socket; NULL: fork a process */
};

/* result is never NULL and belongs to the callee. Its error also reports a crashed child. */
typedef void (*child_done_t)(void *userdata, Traced__Control__ExportResult *result);

/*
 * Takes the lowest numbers, which a forked child has to close one by one, so that none of them is
 * ever another user's file, whose closing may block the child. Call it before any is received.
 */
void child_reserve_descriptors(void);

/* Files of this device, which is ours, are closed in a forked child. */
void child_set_tracefs(dev_t dev);

struct child;

int child_spawn(struct child **ret, struct loop *loop, const struct child_spec *spec,
		child_done_t done, void *userdata, struct error *err);
/* Kills the child if it still lives, without calling done. */
struct child *child_free(struct child *c);
DEFINE_CLEANUP_FUNC(struct child *, child_free);
/*
 * Frees it, and returns the read end of a pipe, not blocking, that the process has open until it is
 * gone. c NULL: -EBADF.
 */
int child_end(struct child *c);

/* 0: unknown, as a service's process may not have begun. */
pid_t child_pid(struct child *c);

/* In a service's process: receives the request and calls run; returns an exit status. */
int child_serve(int connection, int (*run)(int argc, char **argv));
