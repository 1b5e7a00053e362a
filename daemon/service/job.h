/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An answer that takes time: a client asked for the result of a session, a snapshot or an
 * extraction, perhaps with a descriptor to write it to. A job waits for its session's end, runs an
 * extractor or exporter, replies, and is over. manager_reap() frees it then.
 *
 * A job exports either its session's spool or one of its own, a snapshot's or an extraction's. The
 * snapshot of a recording that is no flight recorder is the first part of its spool.
 *
 * If the client leaves, the job continues only if its output is a file. A pipe may have no reader
 * and could block it forever.
 */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/service/child.h"
#include "daemon/service/connection.h"
#include "daemon/service/follow.h"
#include "daemon/service/manager.h"
#include "daemon/service/merging.h"
#include "daemon/service/session.h"
#include "daemon/service/spool.h"
#include "daemon/service/stall.h"
#include "export/export.h"

enum job_kind {
	JOB_START,    /* waits until the session records */
	JOB_STOP,     /* ends the session; without an output, discards the recording */
	JOB_ATTACH,   /* waits for the session's end */
	JOB_SNAPSHOT, /* of a running session */
	JOB_EXTRACT,  /* of a buffer outside any session */
};

struct job {
	/* In session->jobs, or without a session in manager->jobs; once over, in over.jobs. */
	TAILQ_ENTRY(job) list;
	TAILQ_ENTRY(job) of_client; /* in connection->jobs */
	struct manager *manager;
	enum job_kind kind;
	bool over;
	bool attach;		       /* JOB_START: becomes a JOB_ATTACH once it is answered */
	struct connection *connection; /* NULL: the client has left, or the job is over */
	struct session *session;       /* NULL: the spool is the job's own, or the job is over */
	uid_t uid, account;	       /* the requesting user's, as in struct connection */
	uint64_t request_id;
	int out_fd;			 /* owned; -EBADF: no output, only counts */
	Traced__Control__Output *output; /* owned; NULL: no output */
	struct merging merging;
	TAILQ_ENTRY(job) of_watched; /* in watched->watchers */
	struct session *watched;     /* its spool is followed; NULL: none, or it has ended */
	struct spool spool;	     /* owned */
	struct capture_part part;    /* of the session's stream, at part_fd */
	int part_fd;		     /* owned; -EBADF: none */
	bool tgid;		     /* as in struct exporter_request */
	struct taking *taking;	     /* under way into `spool`; NULL: none */
	struct child *child;	     /* running; NULL: waits for the session's end */
	bool exporting;		     /* child is an exporter */
	struct stall *stall;	     /* watches the exporter; NULL: none */
	struct follow *follow;	     /* child follows the session's spool */
	Traced__Control__Session *description; /* the session when the export began */
};

/*
 * Makes a job from a checked request; descriptors that it takes from fds become -EBADF. output
 * NULL: no output. -EINVAL, -EBADF: invalid output, with a hint.
 */
int job_new(struct job **ret, enum job_kind kind, struct connection *connection,
	    uint64_t request_id, const Traced__Control__Output *output, int *fds, size_t fd_count,
	    struct error *err);
/* For manager_reap(): releases the memory of a job that is over. */
struct job *job_free(struct job *j);

/* From now on the job waits for the session. */
void job_wait_for(struct job *j, struct session *s);
/*
 * The stream is complete: exports it, or replies at once without an output. -errno: the export
 * could not begin, which is reported; the job is over.
 */
int job_run(struct job *j);
/* The requested session records: replies with its description. */
void job_started(struct job *j);
/* The session records: exports the stream so far and follows it. On failure j is unchanged. */
int job_follow(struct job *j, struct error *err);
/* Exports what the session records from now on, as it comes. On failure j is unchanged. */
int job_watch(struct job *j, struct session *s, struct error *err);
/* All that a watched session recorded is in its spool. */
void job_watched_all(struct job *j);
/* Its spool has the snapshot: exports it. s NULL: the session is over. result: 0 or -errno. */
void job_taken(struct session *s, struct job *j, int result, struct error *err);
/* Starts draining an existing buffer into the job's own spool. On failure j is unchanged. */
int job_extract(struct job *j, const char *instance, struct error *err);
/* Replies with an error; the job is over. */
void job_fail(struct job *j, const struct error *err);
/* Ends the job without a reply: kills its child, and closes its output. */
void job_over(struct job *j);
/* The daemon ends: the same; logs the name of a spool that stays. */
void job_abandon(struct job *j);
/* Ends the job, unless its export writes a file. */
void job_client_left(struct job *j);

/* True if its output is a regular file, or files that a process of the client makes. */
bool job_writes_files(const struct job *j);
static inline bool job_has_output(const struct job *j)
{
	return j->out_fd >= 0;
}
