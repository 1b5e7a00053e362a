/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording from Start to its last reply. The states and their transitions are described in
 * session.c.
 */
#pragma once

#include "daemon/marks/marks.h"
#include "daemon/service/draining.h"
#include "daemon/service/manager.h"
#include "daemon/service/spool.h"

struct session {
	TAILQ_ENTRY(session) list;
	struct manager *manager;
	struct connection *client; /* the session ends when this client leaves; NULL: detached */
	char *name, *what;	   /* owned */
	uid_t uid;
	pid_t pid; /* the starting process, and its name at that time */
	char comm[32];
	Traced__Control__Session__State state;
	bool ring, tgid, streamed;
	uint64_t duration_ns, buffer_bytes;
	uint64_t memory_bytes;	  /* kernel memory of the main ring buffers */
	uint64_t spool_elsewhere; /* as in struct start_plan */
	uint64_t cpu_ns;	  /* loop thread's CPU time for this session */
	struct arming *arming;	  /* NULL once armed */
	struct capture *capture;  /* NULL until armed, and after draining */
	struct spool spool;
	struct marks_sink marks; /* receives applications' marks */
	unsigned marks_refused;	 /* programs and threads refused before the session began */
	struct draining draining;
	Traced__Control__Session *last; /* the description after draining */
	char *error;			/* FAILED: the reason */
	char *granted;			/* differences from the request, or NULL */
	char *note;			/* the first problem, or NULL */
	bool end_wanted;		/* end requested while arming */
	enum capture_end end_reason;
	/* Outcome of the session's end, for conclude(). */
	bool settling, written, export_failed, unwanted, told;
};

/*
 * Arms and then starts a session. start is copied. A session that is not detached ends when its
 * client leaves.
 */
int session_start(struct session **ret, struct connection *client,
		  const Traced__Control__Start *start, struct error *err);
struct session *session_free(struct session *s);
DEFINE_CLEANUP_FUNC(struct session *, session_free);

/*
 * The worker's result: starts the capture, and replies to the client that asked. capture NULL: err
 * says why. May free s.
 */
void session_armed(struct session *s, struct capture *capture, uint64_t cpu_ns, struct error *err);

static inline bool session_records(const struct session *s)
{
	return s->capture != NULL;
}

/* True until the recording has ended. */
static inline bool session_lives(const struct session *s)
{
	return s->arming || s->capture;
}

/*
 * Stops recording (after arming, if that is under way), drains, and passes the stream to the
 * waiting jobs. May free s.
 */
void session_end(struct session *s, enum capture_end reason);
/* Ends a recording that cannot continue, keeping what it has. code: -errno. May free s. */
void session_end_in_trouble(struct session *s, int code, const char *message);
/* Runs the jobs that wait for an ended session. May free s. */
void session_settle(struct session *s);
/* An export of the session has ended. written: the recording is safe elsewhere. May free s. */
void session_job_over(struct session *s, bool written);
/* True if a client waits for the recording. */
bool session_has_output(const struct session *s);
/* True if an export follows the recording. */
bool session_is_followed(const struct session *s);
/* Reports new data to the exports that follow the recording. */
void session_wake_followers(struct session *s);
/*
 * Ends the recording because the daemon stops. Waiting clients are notified and must fetch it
 * before session_leave(). Without one the spool is left behind at once. A session still arming is
 * cancelled, unless a client waits for it. May free s.
 */
void session_shut_down(struct session *s);
/*
 * Leaves the spool and logs its name, unless an export is writing it. A failed session leaves
 * nothing. May free s.
 */
void session_leave(struct session *s);
/* Discards the recording; jobs that wait for it get an error. Frees s. */
void session_cancel(struct session *s, const char *why);
/* The client of a session that is not detached has left. May free s. */
void session_client_left(struct session *s);
/* Writes a stream of the rings' current contents to a new spool. */
int session_snapshot(struct session *s, struct spool *ret, struct error *err);
int session_mark(struct session *s, const char *text, struct error *err);
int session_sync(struct session *s, const char *id, struct capture_sync *ret, struct error *err);

/*
 * Keeps a problem for the recording's receiver and for the log. Only the first one counts: it
 * explains the rest. code: 0 or -errno; text is copied.
 */
void session_note(struct session *s, int code, const char *text);
/* level: LOG_INFO etc.; error: 0 or -errno. */
void session_log(const struct session *s, int level, int error, const char *text);

/*
 * For people and programs. NULL: out of memory. Free with traced__control__session__free_unpacked.
 */
Traced__Control__Session *session_describe(struct session *s);
/* The same without the state, while s->capture exists. */
Traced__Control__Session *session_describe_capture(struct session *s);
