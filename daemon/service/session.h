/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording from Start to its last reply:
 *
 *	ARMING ─ RECORDING ─ DRAINING ─┬─ EXPORTING ─ gone
 *	                               ├─ STOPPED ──┘ (somebody came for it)
 *	                               └─ FAILED ─ gone when asked for
 *
 * The capture is made by the worker, and freed by it as soon as it is drained, and
 * so the kernel is as it was; the spool file lives until it is exported or thrown away.
 */
#pragma once

#include "daemon/marks/marks.h"
#include "daemon/service/draining.h"
#include "daemon/service/manager.h"
#include "daemon/service/spool.h"

struct session {
	TAILQ_ENTRY(session) list;
	struct manager *manager;
	struct connection *client; /* whose leaving ends it; NULL: detached */
	char *name, *what;	   /* owned */
	uid_t uid;
	pid_t pid; /* of who started it, and its name at that time */
	char comm[32];
	Traced__Control__Session__State state;
	bool ring, tgid, streamed;
	uint64_t duration_ns, buffer_bytes;
	uint64_t memory_bytes;	  /* of the kernel's, for its main ring buffers */
	uint64_t spool_elsewhere; /* as its plan says */
	uint64_t cpu_ns;	  /* this thread's, spent on this session */
	struct arming *arming;	  /* NULL once armed */
	struct capture *capture;  /* NULL until armed, and once drained */
	struct spool spool;
	struct marks_sink marks; /* the recording's part in applications' marks */
	unsigned marks_refused;	 /* programs and threads, before it began */
	struct draining draining;
	Traced__Control__Session *last; /* its description when it was drained */
	char *error;			/* FAILED: why */
	char *granted;			/* NULL, or how it differs from what was asked for */
	char *note;			/* NULL, or the first trouble */
	bool end_wanted;		/* while it was armed */
	enum capture_end end_reason;
	/* What came of its end, until conclude() acts on it. */
	bool settling, written, export_failed, unwanted, told;
};

/* Has it armed, and started by then. start is copied; client's leaving ends one not detached. */
int session_start(struct session **ret, struct connection *client,
		  const Traced__Control__Start *start, struct error *err);
struct session *session_free(struct session *s);
DEFINE_CLEANUP_FUNC(struct session *, session_free);

/*
 * The worker's answer: starts capture, and replies to who asked for the session.
 * capture NULL: err says why there is none. May free s.
 */
void session_armed(struct session *s, struct capture *capture, uint64_t cpu_ns, struct error *err);

static inline bool session_records(const struct session *s)
{
	return s->capture != NULL;
}

/* Its end is still to come. */
static inline bool session_lives(const struct session *s)
{
	return s->arming || s->capture;
}

/*
 * Stops recording, drains, and hands the stream to the jobs that wait for it; once it is
 * armed. May free s.
 */
void session_end(struct session *s, enum capture_end reason);
/* The recording can't go on: ends it with what it has. code: -errno. May free s. */
void session_end_in_trouble(struct session *s, int code, const char *message);
/* Runs the jobs that wait for an ended session. May free s. */
void session_settle(struct session *s);
/* An export of an ended session is over. written: the recording is safe elsewhere. May free s. */
void session_job_over(struct session *s, bool written);
/* True if somebody waits for what was recorded. */
bool session_has_output(const struct session *s);
/* True if an export follows it. */
bool session_is_followed(const struct session *s);
/* Tells the exports that follow it: there is more in the stream. */
void session_wake_followers(struct session *s);
/*
 * The daemon ends, and with it the recording: who waits for that is told, and is to send for what
 * there is before session_leave(); what nobody waits for is left at once, and what does not record
 * yet is cancelled. May free s.
 */
void session_shut_down(struct session *s);
/*
 * Unless it is being written: its spool stays, and the log has its name. One that failed has
 * nothing to leave. May free s.
 */
void session_leave(struct session *s);
/* Throws away what was recorded; jobs that wait for it get an error. Frees s. */
void session_cancel(struct session *s, const char *why);
/* The client of a session that is not detached has left. May free s. */
void session_client_left(struct session *s);
/* A stream of what the rings hold now, into spool. */
int session_snapshot(struct session *s, struct spool *ret, struct error *err);
int session_mark(struct session *s, const char *text, struct error *err);
int session_sync(struct session *s, const char *id, struct capture_sync *ret, struct error *err);

/*
 * Trouble that whoever gets the recording is told of, and the log, unless there was some before:
 * the first is the one that explains. code: 0 or -errno; text is copied.
 */
void session_note(struct session *s, int code, const char *text);
/* level: LOG_INFO and the like; error: 0 or -errno. */
void session_log(const struct session *s, int level, int error, const char *text);

/* For people and programs; NULL: out of memory; free with traced__control__session__free_unpacked.
 */
Traced__Control__Session *session_describe(struct session *s);
/* The same without its state, while s->capture exists. */
Traced__Control__Session *session_describe_capture(struct session *s);
