/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording from Start to its last reply. session.c explains it; session_state.c has the table
 * of its states.
 */
#pragma once

#include "daemon/marks/marks.h"
#include "daemon/service/command.h"
#include "daemon/service/draining.h"
#include "daemon/service/manager.h"
#include "daemon/service/spool.h"

/* The values that clients see are those of the protocol. */
enum session_state {
	SESSION_ARMING = TRACED__CONTROL__SESSION__STATE__ARMING,
	SESSION_RECORDING = TRACED__CONTROL__SESSION__STATE__RECORDING,
	SESSION_DRAINING = TRACED__CONTROL__SESSION__STATE__DRAINING,
	SESSION_EXPORTING = TRACED__CONTROL__SESSION__STATE__EXPORTING,
	SESSION_STOPPED = TRACED__CONTROL__SESSION__STATE__STOPPED,
	SESSION_FAILED = TRACED__CONTROL__SESSION__STATE__FAILED,
	SESSION_OVER, /* manager_reap() frees it; clients do not see it any more */
};

enum session_event {
	SESSION_ARMED,	      /* the worker made the capture, and it records */
	SESSION_NOT_ARMED,    /* there is no capture, or it cannot record */
	SESSION_ENDED,	      /* somebody or something ended the recording */
	SESSION_DRAINED,      /* the spool has the recording, or a part of it */
	SESSION_NOTHING_KEPT, /* the spool has nothing of the recording */
	SESSION_EXPORTED,     /* the recording has ended, and an export runs */
	SESSION_CONCLUDED,    /* nobody needs the session any more */
	SESSION_CANCELLED,    /* the recording is discarded, or left behind in its spool */
};

struct session {
	TAILQ_ENTRY(session) list; /* in manager->sessions; once over, in manager->over.sessions */
	struct manager *manager;
	struct job_list watchers;  /* followers of the spool that the session does not wait for */
	struct job_list jobs;	   /* waiting for this session, in order of their requests */
	struct connection *client; /* the session ends when this client leaves; NULL: detached */
	char *name, *what;	   /* owned */
	uid_t uid, account;	   /* as in struct connection */
	pid_t pid;		   /* the starting process, and its name at that time */
	char comm[32];
	enum session_state state; /* changed by session_pass() only */
	bool ring, tgid, streamed;
	bool for_conditions;	/* its stream is for conditions only */
	struct command command; /* recorded; its end ends the recording */
	bool settles;		/* the reply to Start comes before tracing is on */
	bool at_threshold;	/* the kernel ended it, at stop_us or by a trigger */
	uint64_t duration_ns, buffer_bytes;
	bool counts_only;	  /* histograms and no events */
	uint64_t memory_bytes;	  /* kernel memory of the main ring buffers */
	uint64_t spool_elsewhere; /* as in struct start_plan */
	struct arming *arming;	  /* NULL once armed */
	struct loop_source
		*begin;		 /* timer of an armed session; NULL: not armed yet, or it records */
	bool awaits_follower;	 /* it records once its export waits, at the latest with `begin` */
	struct capture *capture; /* NULL until armed, and after draining */
	struct draining
		*draining; /* reads capture's rings; NULL until it records, and afterwards */
	struct retirement *retirement; /* for both */
	int stream_fd;		       /* the spool's, for capture; owned */
	struct spool spool;
	struct marks_sink marks;	/* receives applications' marks */
	unsigned marks_refused;		/* programs and threads refused before the session began */
	Traced__Control__Session *last; /* the description while nobody may ask capture */
	char *error;			/* FAILED: the reason */
	char *granted;			/* differences from the request, or NULL */
	char *note;			/* the first problem, or NULL */
	char *place;			/* where the client writes; NULL: not told */
	Traced__Control__ExportResult *followed; /* of the export that followed it, or NULL */
	bool end_wanted;			 /* end requested before tracing is on */
	bool leave_wanted;			 /* session_leave() while draining */
	enum capture_end end_reason;
	/* Outcome of the exports, for session_conclude(). */
	bool export_failed; /* an error named the spool, so it stays */
	bool unneeded;	    /* the recording is written, unwanted, or its failure is reported */
};

/*
 * Arms and then starts a session. start is copied; descriptors that it takes from fds become
 * -EBADF. A session that is not detached ends when its client leaves.
 */
int session_start(struct session **ret, struct connection *client,
		  const Traced__Control__Start *start, int *fds, size_t fd_count,
		  struct error *err);
/* For manager_reap(): releases the memory of a session that is over. */
struct session *session_free(struct session *s);
DEFINE_CLEANUP_FUNC(struct session *, session_free);

/* Changes the state. False: the event is refused, and logged as a bug. */
bool session_pass(struct session *s, enum session_event event);

/*
 * The worker's result: starts the capture, and replies to the client that asked. capture NULL: err
 * says why. Consumes stream_fd, the capture's copy of the spool's.
 */
void session_armed(struct session *s, struct capture *capture, int stream_fd, struct error *err);

static inline bool session_records(const struct session *s)
{
	return s->state == SESSION_RECORDING;
}

/* True until the recording has ended. */
static inline bool session_lives(const struct session *s)
{
	return s->state == SESSION_ARMING || s->state == SESSION_RECORDING;
}

/*
 * Stops recording (after arming, if that is under way), drains, and passes the stream to the
 * waiting jobs.
 */
void session_end(struct session *s, enum capture_end reason);
/* Ends a recording that cannot continue, keeping what it has. code: -errno. */
void session_end_in_trouble(struct session *s, int code, const char *message);
/* Runs the jobs that wait for an ended session. */
void session_settle(struct session *s);
/* An export of the session has ended. written: the recording is safe elsewhere. */
void session_job_over(struct session *s, bool written);
/* True if an export follows the recording. */
bool session_is_followed(const struct session *s);
/* An export that follows the recording waits for more data. */
void session_follower_waits(struct session *s);
/* Keeps the result of such an export, for a Stop that waits. Takes the result. */
void session_set_followed(struct session *s, Traced__Control__ExportResult *result);
/* True if an export that follows has read all that was reported to it. */
bool session_starves_followers(const struct session *s);
/* CPU time that the exports which follow have taken so far. */
uint64_t session_followers_cpu_ns(const struct session *s);
/* Reports new data to the exports that follow the recording. */
void session_wake_followers(struct session *s);
/* An export of it hangs: answers those who stop the session and wait for files. */
void session_release_stops(struct session *s);
/*
 * Ends the recording because the daemon stops. Waiting clients are notified and must fetch it
 * before session_leave(). Without one the spool is left behind at once. A session still arming is
 * cancelled, unless a client waits for it.
 */
void session_shut_down(struct session *s);
/*
 * Leaves the spool and logs its name, unless an export is writing it. A failed session leaves
 * nothing.
 */
void session_leave(struct session *s);
/* Discards the recording; jobs that wait for it get an error. */
void session_cancel(struct session *s, const char *why);
/* The daemon ends: leaves the spool as it is and logs its name, without replies. */
void session_abandon(struct session *s);
/* The client of a session that is not detached has left. */
void session_client_left(struct session *s);
/*
 * Of a flight recorder: has a stream of the rings' current contents written to the job's spool. Of
 * another recording: has the rings read to their end, for j->part. Calls job_taken().
 */
int session_snapshot(struct session *s, struct job *j, struct error *err);
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
/* Sets `last` to what is so now, if nobody uses the capture for long; while s->draining exists. */
void session_remember(struct session *s);
/* A description without the state, while s->capture is the caller's. */
Traced__Control__Session *session_describe_capture(struct session *s);
