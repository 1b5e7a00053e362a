/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's root object: configuration, surroundings, and the lists that own everything else.
 * Ownership goes one way:
 *
 *	manager ─┬─ connections      a client's end of the socket
 *	         ├─ sessions         one per recording
 *	         │     └─ jobs       one per answer that waits for the recording
 *	         ├─ jobs             snapshots and extractions, with spools of their own
 *	         └─ over             all of these that are over, until manager_reap()
 *
 * Each connection also lists the jobs of its client. A connection, session or job that is over
 * leaves all lists but `over`, and nothing points to it any more, except the functions on the
 * stack. So nothing is freed under a caller: manager_reap() runs from the loop. All of this runs in
 * one loop and one thread. Other threads see nothing of it: the worker's, for work that makes the
 * kernel wait; one for each recording, which reads its rings (draining.h), and one that polls files
 * for it; those that close descriptors (base/closer.h).
 */
#pragma once

#include <sys/queue.h>

#include "daemon/capture/capture.h"
#include "daemon/capture/names/kernel_symbols.h"
#include "daemon/service/config.h"
#include "daemon/service/folder.h"
#include "daemon/service/loop.h"
#include "daemon/service/metrics.h"
#include "daemon/service/sparing.h"
#include "proto/control.pb-c.h"

struct accounts;
struct closer;
struct leaving;
struct connection;
struct job;
struct marks;
struct retirement;
struct session;
struct worker;

TAILQ_HEAD(connection_list, connection);
TAILQ_HEAD(session_list, session);
TAILQ_HEAD(job_list, job);
TAILQ_HEAD(retirement_list, retirement);

/* Command line values; NULL: use the configuration. */
struct manager_options {
	const char *config_file; /* NULL: CONFIG_FILE, which may be missing */
	const char *socket, *state_dir, *spool_dir, *tracefs;
	const char *exporter_service; /* socket of the export service; NULL: fork children */
	const char *metrics;	      /* metrics file for Prometheus */
	int log_level;		      /* -1: use the configuration */
	bool private;		      /* serves one connection, then ends */
};

struct turns {
	struct connection_list waiting; /* in order of their arrival */
	uid_t last_account;		/* who was served last, and when */
	uint64_t served_ns;
	struct loop_source *source;
};

struct manager {
	struct loop *loop;		/* borrowed; outlives the manager */
	struct manager_options options; /* strings are the caller's */
	struct config config;
	struct accounts *accounts;
	struct folder state_dir; /* a private daemon removes it and its spool, if it made them */
	bool made_spool_dir;
	struct tracefs *tracefs; /* NULL until needed: see manager_env() */
	struct capture_env env;
	struct excerpt_memory excerpt;
	struct worker *worker;
	struct retirement_list retirements; /* that wait for a recording's thread */
	struct leaving *leaving;	    /* exporters that are to end */
	struct closer *closer;		    /* for all that clients and programs send */
	struct tracefs *worker_tracefs;	    /* separate: see tracefs_dup() */
	struct sparing sparing;

	int listen_fd;
	char *socket_path; /* unlinked at the end; NULL: not ours */
	struct loop_source *listen, *listen_again, *claim_timer, *stop_timer;

	struct marks *marks;  /* NULL: marks are not recorded */
	bool marks_elsewhere; /* another traced records marks */
	struct loop_source *marks_io, *marks_tick;

	struct connection_list connections;
	struct turns turns;
	struct session_list sessions;
	struct job_list jobs; /* those without a session */
	unsigned connection_count, session_count, last_name;
	unsigned job_count; /* of all jobs */
	struct {
		struct connection_list connections;
		struct session_list sessions;
		struct job_list jobs;
	} over;
	struct loop_source *reaper;
	uint64_t started_boot_ns;
	uint64_t settle_us; /* between the early reply of a Start and its recording */
	struct metrics metrics;
	bool stopping;
};

/* Reads the configuration. loop is borrowed. */
int manager_new(struct manager **ret, struct loop *loop, const struct manager_options *options,
		struct error *err);
struct manager *manager_free(struct manager *m);
DEFINE_CLEANUP_FUNC(struct manager *, manager_free);

/* Undoes what crashed predecessors left in the kernel, and names their recordings. */
void manager_recover(struct manager *m);
/* Takes a listening socket (socket activation), or makes the configured one if fd < 0. */
int manager_listen(struct manager *m, int fd, struct error *err);
/* Serves a connected socket; consumes fd. */
int manager_adopt(struct manager *m, int fd, struct error *err);
/* Reads the configuration again. Settings that need a restart keep their values, with a warning. */
void manager_reload(struct manager *m);
/*
 * Orderly shutdown: finishes recordings that a client waits for, within a time limit, then exits
 * the loop. A second call exits at once.
 */
void manager_stop(struct manager *m);

/* Opens tracefs on first use, so that a daemon on a kernel without it can still report that. */
int manager_env(struct manager *m, const struct capture_env **ret, struct error *err);
/* The same for the worker's thread. */
int manager_worker_env(struct manager *m, struct capture_env *ret, struct error *err);
/*
 * Call after a session or job is added, removed or changed: updates the service manager's status,
 * and may end the daemon.
 */
void manager_changed(struct manager *m);
/* Something is in `over`: the loop frees it soon. */
void manager_reap_later(struct manager *m);
/* A name belongs to its user: others may have sessions of the same name. */
struct session *manager_find_session(struct manager *m, uid_t uid, const char *name);
