/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An answer that takes time: a client asked for the result of a session, a snapshot or an
 * extraction, perhaps with a descriptor to write it to. A job waits for its session's end, runs an
 * extractor or exporter, replies, and is freed.
 *
 * If the client leaves, the job continues only if its output is a file. A pipe may have no reader
 * and could block it forever.
 */
#pragma once

#include "daemon/service/child.h"
#include "daemon/service/connection.h"
#include "daemon/service/follow.h"
#include "daemon/service/manager.h"
#include "daemon/service/merging.h"
#include "daemon/service/session.h"
#include "daemon/service/spool.h"
#include "export/export.h"

enum job_kind {
	JOB_START,    /* waits until the session records */
	JOB_STOP,     /* ends the session; without an output, discards the recording */
	JOB_ATTACH,   /* waits for the session's end */
	JOB_SNAPSHOT, /* of a running session */
	JOB_EXTRACT,  /* of a buffer outside any session */
};

struct job {
	TAILQ_ENTRY(job) list;
	struct manager *manager;
	enum job_kind kind;
	struct connection *connection; /* NULL: the client has left */
	struct session *session;       /* NULL: none needed, or the session is freed */
	uid_t uid;		       /* the requesting user */
	uint64_t request_id;
	int out_fd;			 /* owned; -EBADF: no output, only counts */
	Traced__Control__Output *output; /* owned; NULL: no output */
	struct merging merging;
	struct spool spool;		       /* owned: a snapshot's or an extraction's */
	struct child *child;		       /* running; NULL: waits for the session's end */
	bool exporting;			       /* child is an exporter */
	struct follow *follow;		       /* child follows the session's spool */
	Traced__Control__Session *description; /* the session when the export began */
};

/*
 * Makes a job from a checked request; descriptors that it takes from fds become -EBADF. output
 * NULL: no output. -EINVAL, -EBADF: invalid output, with a hint.
 */
int job_new(struct job **ret, enum job_kind kind, struct connection *connection,
	    uint64_t request_id, const Traced__Control__Output *output, int *fds, size_t fd_count,
	    struct error *err);
struct job *job_free(struct job *j);
DEFINE_CLEANUP_FUNC(struct job *, job_free);

/*
 * The stream (the session's or the job's own) is complete: exports it, or replies at once without
 * an output. May free j, and notifies its session then.
 */
void job_run(struct job *j);
/* The requested session records: replies with its description. Frees j. */
void job_started(struct job *j);
/* The session records: exports the stream so far and follows it. On failure j is unchanged. */
int job_follow(struct job *j, struct error *err);
/* Starts draining an existing buffer into the job's own spool. On failure j is unchanged. */
int job_extract(struct job *j, const char *instance, struct error *err);
/* Replies with an error; frees j. */
void job_fail(struct job *j, const struct error *err);
/* The client has left. May free j. */
void job_forget_connection(struct job *j);

static inline bool job_has_output(const struct job *j)
{
	return j->out_fd >= 0;
}

/* True for jobs that a session's end completes. */
static inline bool job_awaits(const struct job *j, const struct session *s)
{
	return j->session == s && (j->kind == JOB_STOP || j->kind == JOB_ATTACH);
}
