/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's root object: configuration, surroundings, and the lists that
 * own all the rest. Ownership goes one way:
 *
 *	manager ─┬─ connections   a client's end of the socket
 *	         ├─ sessions      a recording each
 *	         └─ jobs          an answer that somebody waits for, each
 *
 * A job points to its connection and its session, which clear these pointers
 * when they go (job_forget_connection, job_forget_session). Nothing else
 * crosses. Everything runs in one loop and one thread; but what makes the
 * kernel wait runs in the worker's, which sees nothing of the above.
 */
#pragma once

#include <sys/queue.h>

#include "daemon/capture/capture.h"
#include "daemon/service/config.h"
#include "daemon/service/loop.h"
#include "daemon/service/metrics.h"
#include "daemon/service/sparing.h"
#include "proto/control.pb-c.h"

struct connection;
struct job;
struct marks;
struct session;
struct worker;

TAILQ_HEAD(connection_list, connection);
TAILQ_HEAD(session_list, session);
TAILQ_HEAD(job_list, job);

/* What the command line said; NULL: as configured. */
struct manager_options {
	const char *config_file; /* NULL: CONFIG_FILE, which may be absent */
	const char *socket, *state_dir, *spool_dir, *tracefs;
	const char *exporter_service; /* socket of the service that exports; NULL: children do */
	const char *metrics;	      /* the file for Prometheus */
	int log_level;		      /* -1: as configured */
	bool private;		      /* serves one connection, then ends */
	uint64_t claim_us;	      /* 0, or how long a recording that it ends can be sent for */
};

struct manager {
	struct loop *loop;		/* outlives it */
	struct manager_options options; /* its strings are the caller's */
	struct config config;
	struct tracefs *tracefs; /* NULL until it is needed: see manager_env() */
	struct capture_env env;
	struct worker *worker;
	struct tracefs *worker_tracefs; /* its own: see tracefs_dup() */
	struct sparing sparing;

	int listen_fd;
	char *socket_path; /* to be unlinked at the end; NULL: not ours */
	struct loop_source *listen, *listen_again, *claim_timer, *stop_timer;

	struct marks *marks;  /* NULL: they are not recorded */
	bool marks_elsewhere; /* another traced has them */
	struct loop_source *marks_io, *marks_tick;

	struct connection_list connections;
	struct session_list sessions;
	struct job_list jobs;
	unsigned connection_count, session_count, last_name;
	uint64_t started_boot_ns;
	struct metrics metrics;
	bool stopping;
};

/* Reads the configuration; event is referenced. */
int manager_new(struct manager **ret, struct loop *loop, const struct manager_options *options,
		struct error *err);
struct manager *manager_free(struct manager *m);
DEFINE_CLEANUP_FUNC(struct manager *, manager_free);

/* Undoes what crashed predecessors left in the kernel, and says which recordings they left. */
void manager_recover(struct manager *m);
/* Takes a listening socket (of socket activation), or makes the configured one if fd < 0. */
int manager_listen(struct manager *m, int fd, struct error *err);
/* Serves a socket that is connected already; takes fd over. */
int manager_adopt(struct manager *m, int fd, struct error *err);
/* Reads the configuration again; what can't change while running is said and stays. */
void manager_reload(struct manager *m);
/*
 * Ends in order: recordings that somebody waits for are finished, within a
 * bound; then the loop exits. Called again: at once.
 */
void manager_stop(struct manager *m);

/* The kernel's side, opened when first needed: a daemon on a kernel without it can still say so. */
int manager_env(struct manager *m, const struct capture_env **ret, struct error *err);
/* The same for what the worker does. */
int manager_worker_env(struct manager *m, struct capture_env *ret, struct error *err);
/* To be called when a session or job came, went, or changed: tells the service manager, may end. */
void manager_changed(struct manager *m);
struct session *manager_find_session(struct manager *m, const char *name);
