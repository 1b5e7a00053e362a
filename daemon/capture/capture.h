/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One recording: its private tracefs instances, its per-CPU readers, and the capture stream that
 * they write. Everything here needs the rights to use tracefs; nothing here decodes an event. One
 * thread at a time per capture.
 *
 * Life of a capture:
 * - capture_begin; then capture_arm validates, creates the instances and applies the plan, all
 *   journalled, in slices. capture_new does both.
 * - capture_prepare writes header and names to the stream: what is read before the kernel records
 *   is in no trace.
 * - capture_start turns tracing on.
 * - capture_dispatch runs whenever capture_fd is readable or capture_deadline has passed.
 * - capture_stop turns tracing off, drains the rings and writes END.
 * - capture_free removes the instances and the journal. Alone, at any point, it undoes everything.
 *   capture_undo does it in slices before.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"
#include "base/parse.h"
#include "daemon/capture/plan/probe_kind.h"
#include "daemon/capture/rings/sampler.h"
#include "daemon/capture/tracefs/tracefs.h"
#include "traced/stream.h"

struct excerpt_memory;

/* The surroundings of a capture. Borrowed; must outlive the captures. */
struct capture_env {
	struct tracefs *tracefs;
	const char *proc;      /* "/proc", or a fixture's directory */
	const char *state_dir; /* the journals' directory; must exist, writable by nobody else */
	struct excerpt_memory *excerpt; /* kept for later captures; NULL: none */
	const char *sys;		/* "/sys", or a fixture's directory; NULL: "/sys" */
};
static inline const char *capture_env_sys(const struct capture_env *env)
{
	return env->sys ?: "/sys";
}

/* A recording's instances are called traced-PID-NAME and traced-PID-NAME-tasks. */
#define CAPTURE_INSTANCE_PREFIX "traced-"
/* The pid in an instance's name, which is its creator's; 0: not one of ours. */
pid_t capture_instance_owner(const char *instance);

struct capture_event_spec {
	const char *glob;   /* "sched", "irq:*", "sched:sched_switch", "sched_switch", "*:*" */
	const char *filter; /* the kernel's filter language, or NULL */
};

/* An event that the recording makes, in the kernel's code or a program. */
struct capture_probe {
	enum probe_kind_id kind;
	const char *definition; /* plan/probes.h */
	const char *filter;	/* the kernel's filter language, or NULL */
};

/* A command of the kernel that runs when an event happens: plan/event_triggers.h. */
struct capture_trigger {
	const char *event;  /* a glob, as in capture_event_spec; NULL: the probe's */
	size_t probe;	    /* number, from 1, of a probe of the request */
	const char *action; /* "stacktrace:3 if prev_state & 2" */
};

struct capture_words {
	const char *const *items;
	size_t count;
};

/* Limits of what the caller may record. All 0: none. */
struct capture_event_bounds {
	struct capture_words only;  /* globs of events; none: all */
	struct capture_words never; /* exceptions from `only` */
	bool hide_addresses;	    /* filters may compare open fields only: event_field.h */
};

/* CPU limit of the recorder, and what it sheds to stay below it: overhead.h. All 0: no limit. */
struct capture_overhead {
	unsigned cpu_permille;	   /* of one CPU */
	struct capture_words shed; /* globs of events, in the order in which they are shed */
};

/* Request for a tracer of the kernel. All 0: none. */
struct capture_functions {
	const char *tracer; /* "function", "timerlat", ...; NULL: none */
	/*
	 * Globs, "GLOB:mod:MODULE", "GLOB:COMMAND" (traceoff, ...), and regular expressions
	 * "/REGEX/", "/REGEX/:mod:MODULE".
	 */
	struct capture_words only;
	struct capture_words never; /* globs, regular expressions */
	struct capture_words roots; /* function_graph: only these functions' calls */
	unsigned depth;		    /* function_graph: call depth; 0: unlimited */
	/*
	 * Words, with all that regular expressions match. 0: any number of words, and those match
	 * up to FUNCTION_NAMES_MAX.
	 */
	unsigned names_max;
	struct capture_words settings; /* of latency tracers: latency.h */
	unsigned stop_us;	       /* latency at which the kernel stops the tracing; 0: none */
};

enum capture_reader {
	CAPTURE_READER_AUTO, /* splice, else read; docs/architecture.md says why not mmap */
	CAPTURE_READER_MMAP,
	CAPTURE_READER_SPLICE,
	CAPTURE_READER_READ,
};

/* One of the two events that an event by SQL is made of, in pieces: plan/synthetic.h. */
struct capture_sql_side {
	const char *event;     /* "system:event"; ":NAME": one of the recording's own */
	const char *keys;      /* "pid,prio" */
	const char *variables; /* "a=pid,b=common_timestamp.usecs" */
	const char *filter;    /* "": none */
};

struct capture_sql {
	const char *name, *text; /* the text as typed is for the header only */
	const char *fields;	 /* "pid_t pid; u64 lat;" */
	const char *arguments;	 /* "c,d": a variable of the end for each field */
	struct capture_sql_side start, end;
	bool only_counted; /* histograms see it; it is not recorded */
};

#define CAPTURE_PROCESSES_MAX 256 /* each takes a descriptor */

struct capture_request {
	const char *name; /* session name: [A-Za-z0-9_.-]{1,64} */
	uid_t owner;	  /* two users may have sessions of one name */
	const struct capture_event_spec *events;
	size_t event_count;
	struct capture_event_bounds bounds; /* limits what the specs may match */
	struct capture_functions functions;
	const struct capture_trigger *triggers; /* not with top_level */
	size_t trigger_count;
	const struct capture_probe *probes;
	size_t probe_count;
	const struct capture_sql *sql; /* events made of two others, each of events before it */
	size_t sql_count;
	struct capture_words hists;   /* histograms in the kernel: plan/hist_spec.h */
	struct capture_words options; /* trace options: "func_stack_trace", "noirq-info" */
	/*
	 * Take what programs write into the top level's trace_marker, too (Linux 6.16). Ignored
	 * where a CPU's ring may refuse it: the program's write would then fail.
	 */
	bool copies_marks;
	bool top_level; /* the top-level buffer instead of an instance; -EBUSY: it is in use */
	/* Only these threads, and these processes with all their threads. None of both: all. */
	const pid_t *pids, *processes;
	size_t pid_count, process_count;
	bool follow_forks;	    /* and what these start */
	const char *clock;	    /* NULL: "boot" */
	uint64_t buffer_bytes;	    /* per CPU; 0: the default of 4 MiB */
	const struct cpu_set *cpus; /* NULL: all */
	bool ring;		    /* flight recorder: nothing is read until a snapshot */
	bool tgid;		    /* stored in the header for the exporter */
	bool streamed; /* an exporter follows: takes part-filled sub-buffers too and writes FLUSH
			  chunks */
	struct sampling sampling; /* not in ring mode, nor streamed */
	/* Files to read at intervals: polls/poll_plan.h. Not in ring mode. */
	struct capture_words polls;
	enum capture_reader reader;
	const char *const *command; /* for the header only; NULL-terminated or NULL */
	uint64_t duration_ns;	    /* for the header only */
	struct capture_overhead overhead;
	uint64_t stream_limit; /* maximum size of the stream in bytes; 0: no limit */
};

struct capture_cpu_stats {
	unsigned cpu;
	/*
	 * The kernel's own counts. In ring mode the events in the ring are counted; overwritten
	 * events are not lost, overwriting is that mode's purpose.
	 */
	uint64_t events; /* read from the ring so far */
	uint64_t lost;	 /* overrun + commit overrun + dropped */
	uint64_t bytes;	 /* moved to the stream */
	bool offline;
};

struct capture_stats {
	uint64_t start_boot_ns;	      /* 0: not started */
	uint64_t events, lost, bytes; /* totals; bytes of the whole stream */
	uint64_t cpu_ns;	      /* CPU time spent on it so far */
	uint64_t overwritten;	      /* ring mode: overwritten events; they are not lost */
	unsigned event_types;	      /* number of enabled events */
	const char *reader;	      /* "mmap", "splice" or "read" */
	const char *instance;	      /* the main instance */
	size_t cpu_count;
	const struct capture_cpu_stats *cpus; /* borrowed, valid until the next call */
	size_t warning_count;
	const char *const *warnings; /* parts of the request that could not be met; borrowed */
};

enum capture_end { /* as traced.capture.End.Reason */
		   CAPTURE_END_STOPPED,
		   CAPTURE_END_DURATION,
		   CAPTURE_END_COMMAND_EXITED,
		   CAPTURE_END_SNAPSHOT,
		   CAPTURE_END_EXTRACTED,
		   CAPTURE_END_SHUTDOWN,
		   CAPTURE_END_NO_SPACE,
		   CAPTURE_END_FAILED,
		   CAPTURE_END_TRIGGER,
};

struct capture;
struct capture_spare;

/*
 * Takes *spare and sets it to NULL, unless the request is invalid, has probes or is for the top
 * level. Settings that differ are set then. A spare that has changed, or was made for other CPUs,
 * is removed instead. spare may be NULL, and so may *spare.
 *
 * Errors name the part of the request: -ENOENT for a glob that matches no event (the hint has the
 * nearest names), -EPERM if the bounds exclude all events of a glob, -EINVAL with the kernel's
 * error_log for a filter or clock that it refuses, -EEXIST for a name in use, -ENOMEM for buffers
 * that don't fit, -EPERM under lockdown.
 */
int capture_new(struct capture **ret, struct capture_spare **spare, const struct capture_env *env,
		const struct capture_request *request, struct error *err);

/*
 * The same in parts, between which other captures may be armed and undone. spare, env and request
 * are borrowed until capture_arm() is over.
 */
int capture_begin(struct capture **ret, struct capture_spare **spare, const struct capture_env *env,
		  const struct capture_request *request, struct error *err);
/* Some 50 ms of arming. 1: call it again. After an error, only undo and free the capture. */
int capture_arm(struct capture *c, struct error *err);

/*
 * Does the slow part of a start, in any thread, in slices. 1: call it again. stream_fd is borrowed
 * until capture_start, which gets the same file; -1 in ring mode. Without it capture_start does
 * this part.
 */
int capture_prepare(struct capture *c, int stream_fd, struct error *err);
/* Turns tracing on. stream_fd is borrowed until capture_stop; -1 in ring mode. */
int capture_start(struct capture *c, int stream_fd, struct error *err);

/* CLOCK_BOOTTIME ns of the start; 0: not started. */
uint64_t capture_started_ns(const struct capture *c);
/* Readable (epoll) when a CPU's ring should be read. The descriptor never changes. */
int capture_fd(const struct capture *c);
/* CLOCK_BOOTTIME ns by which capture_dispatch must be called even if capture_fd is not readable. */
uint64_t capture_deadline(const struct capture *c);
/*
 * Moves the rings' contents to the stream, within a page budget, and does the periodic work.
 * Returns 0 if nothing is left to do, 1 if the budget is used up: call again soon, and look for
 * other work in between. The rings may never run dry. -ECANCELED: the kernel turned tracing off at
 * the threshold or by a trigger, so the recording is to be stopped: capture_cancel_reason().
 * -ENOSPC, -EDQUOT, -EPIPE...: the stream takes no more.
 */
int capture_dispatch(struct capture *c, struct error *err);

/* After -ECANCELED: CAPTURE_END_TRIGGER, or CAPTURE_END_STOPPED at a threshold. */
enum capture_end capture_cancel_reason(const struct capture *c);

/*
 * Not in ring mode: an exporter follows the stream from now on, or none does any more. Until then
 * it has FLUSH chunks as a streamed recording's. From any thread.
 */
void capture_watch(struct capture *c, bool watched);
/* Number of FLUSH chunks in the stream. */
uint64_t capture_flushes(const struct capture *c);
/* Bytes of the stream so far. */
uint64_t capture_bytes(const struct capture *c);
/*
 * For a streamed recording that must not grow: only writes the names that a FLUSH needs, and then
 * a FLUSH. Returns as capture_dispatch; 0: it is written, or a CPU can't be read now.
 */
int capture_flush(struct capture *c, struct error *err);

/*
 * Does the first part of capture_stop, before anything else that the end needs is recorded. Another
 * thread may be in capture_dispatch meanwhile.
 */
void capture_turn_off(struct capture *c);
/*
 * Turns tracing off, drains the rings and writes END. If a step fails, the others still run, and
 * its error is returned. In ring mode call capture_snapshot first.
 */
int capture_stop(struct capture *c, enum capture_end reason, struct error *err);

/*
 * Ring mode: writes a whole stream of the rings' contents; recording continues. Reading empties
 * the ring, so each snapshot holds the events since the previous one.
 */
int capture_snapshot(struct capture *c, int stream_fd, enum capture_end reason, struct error *err);
struct capture_part {
	uint64_t bytes;			 /* of the stream */
	uint64_t start_boot_ns, boot_ns; /* CLOCK_BOOTTIME of the recording's start, and of now */
};
/*
 * Not in ring mode: writes a slice of what decoding needs, and reads the rings meanwhile. 1: call
 * it again; 0: all is written.
 */
int capture_prepare_part(struct capture *c, struct error *err);
/*
 * After that: reads the rings to their end. The first bytes of the stream are then a whole
 * recording but for its END. It continues.
 */
int capture_take_part(struct capture *c, struct capture_part *ret, struct error *err);
/* Upper bound of the bytes that the rings hold now. -errno: they can't be counted. */
int capture_count_held(struct capture *c, uint64_t *ret);

/* Bytes; kernels before 6.8 truncate a mark at about 1 KB. */
#define CAPTURE_MARK_MAX 1000
/* Writes text to the instance's trace_marker. -EMSGSIZE: it is longer than CAPTURE_MARK_MAX. */
int capture_mark(struct capture *c, const char *text, struct error *err);

/*
 * The same for the instance of another process. -ENODATA: it does not record now. -ENOENT: there is
 * no such instance.
 */
int capture_mark_other(const struct tracefs *fs, const char *instance, const char *text,
		       struct error *err);

#define CAPTURE_SYNC_ID_MAX 128 /* letters, digits, '-', '_' */
#define CAPTURE_SYNCS_MAX 1024
struct capture_sync {
	uint64_t before_ns, after_ns; /* CLOCK_BOOTTIME */
};
/*
 * Ties another clock to the recording's: writes the mark "trace_event_clock_sync: name=ID" between
 * two clock readings. The stream gets both readings and a snapshot of all clocks. -EINVAL: not a
 * valid id; -EEXIST: the recording has this id already; -ENOSPC: too many.
 */
int capture_sync(struct capture *c, const char *id, struct capture_sync *ret, struct error *err);

/*
 * Appends a caller's chunk of marks to the stream. -EOPNOTSUPP in ring mode, which has no stream
 * yet. An error that ends the stream is also returned by the next dispatch.
 */
int capture_append(struct capture *c, enum chunk_type type, const struct iovec *iov, int count);
enum note_kind {
	NOTE_PLAIN,
	NOTE_MISSING,	 /* marks the recording incomplete */
	NOTE_MARKS_LOST, /* marks of applications are lost, as events may be */
};
/* Adds a note to the stream. Errors as capture_append. */
int capture_note(struct capture *c, const char *text, enum note_kind kind);

void capture_get_stats(struct capture *c, struct capture_stats *ret);

/*
 * Some 50 ms of what capture_free() undoes in the kernel. True: call it again. At the end, and at
 * any time before, the capture may only be freed.
 */
bool capture_undo(struct capture *c);
struct capture *capture_free(struct capture *c);
DEFINE_CLEANUP_FUNC(struct capture *, capture_free);

/*
 * Drains an existing buffer (instance NULL: the top-level one) into a whole stream; changes none
 * of its settings. -ENOENT: no such instance; -EBUSY: somebody else reads it.
 */
int capture_extract(const struct capture_env *env, const char *instance, int stream_fd,
		    struct capture_stats *ret, struct error *err);

/*
 * The same for a persistent instance: only events from before the machine's last start. Their
 * formats and symbols come first. ret_taken: whether events may have left the ring, set on failure,
 * too. -ENODATA: there are none. -ENOTTY: the instance is not persistent. -EBUSY: it already
 * records this boot.
 */
int capture_extract_last_boot(const struct capture_env *env, const char *instance, int stream_fd,
			      bool *ret_taken, struct error *err);

/*
 * Undoes what crashed recordings left behind: every journal in state_dir whose owner is gone.
 * Returns the number of instances removed or settings restored. Settings that somebody changed
 * after the crash stay. kept, if it is not NULL, gets a line about each.
 */
int capture_recover(const struct capture_env *env, struct buf *kept, struct error *err);
