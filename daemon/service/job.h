/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An answer that takes time: somebody asked for the outcome of a session, a
 * snapshot or an extraction, and perhaps gave a descriptor to write it to. A
 * job waits for its session's end, runs an extractor or exporter, replies, and
 * is gone. It goes on when its client has left and the output is a file, which
 * somebody may want; a pipe that perhaps nobody reads would hold it for ever.
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
	JOB_START,    /* waits for the session to record */
	JOB_STOP,     /* ends the session; without an output, throws it away */
	JOB_ATTACH,   /* waits for the session's end */
	JOB_SNAPSHOT, /* of a session that goes on */
	JOB_EXTRACT,  /* of a buffer that no session has */
};

struct job {
	TAILQ_ENTRY(job) list;
	struct manager *manager;
	enum job_kind kind;
	struct connection *connection; /* NULL: it has left */
	struct session *session;       /* NULL: it needs none, or the session is gone */
	uid_t uid;		       /* who asked */
	uint64_t request_id;
	int out_fd;			 /* owned; -EBADF: only the counts are wanted */
	Traced__Control__Output *output; /* owned; NULL: none is wanted */
	struct merging merging;
	struct spool spool;		       /* owned: of a snapshot or an extraction */
	struct child *child;		       /* runs now; NULL: waits for the session's end */
	bool exporting;			       /* child is an exporter */
	struct follow *follow;		       /* child follows the session's spool */
	Traced__Control__Session *description; /* of the session when the export began */
};

/*
 * What a request asks for, checked; those of fds that it takes over become -EBADF. output
 * NULL: none. -EINVAL, -EBADF: the output can't be, with a hint.
 */
int job_new(struct job **ret, enum job_kind kind, struct connection *connection,
	    uint64_t request_id, const Traced__Control__Output *output, int *fds, size_t fd_count,
	    struct error *err);
struct job *job_free(struct job *j);
DEFINE_CLEANUP_FUNC(struct job *, job_free);

/*
 * The stream of its session, or its own, is whole: exports it, or if no output
 * is wanted, replies. May free j, and tells its session then.
 */
void job_run(struct job *j);
/* The session that was asked for records: replies with its description. Frees j. */
void job_started(struct job *j);
/*
 * Its session records: exports what there is so far and goes on with it. On failure j is as
 * before.
 */
int job_follow(struct job *j, struct error *err);
/* Starts to drain an existing buffer into the job's own spool. On failure j is as before. */
int job_extract(struct job *j, const char *instance, struct error *err);
/* Replies with an error; frees j. */
void job_fail(struct job *j, const struct error *err);
/* Its client has left. May free j. */
void job_forget_connection(struct job *j);

static inline bool job_has_output(const struct job *j)
{
	return j->out_fd >= 0;
}

/* True for those that a session's end completes. */
static inline bool job_awaits(const struct job *j, const struct session *s)
{
	return j->session == s && (j->kind == JOB_STOP || j->kind == JOB_ATTACH);
}
