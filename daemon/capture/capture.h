/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One recording: its private tracefs instances, its per-CPU readers, and the
 * capture stream that they write. Everything here needs the rights to use
 * tracefs; nothing here decodes an event. One thread at a time per capture.
 *
 * Life: capture_new (validates, creates the instances, applies the plan, all
 * journalled) - capture_start (tracing on; header and names go to the stream
 * while the kernel already records) - capture_dispatch whenever capture_fd is
 * readable or capture_deadline has come - capture_stop (tracing off, the rest
 * drained, END written) - capture_free (instances removed, journal dropped).
 * capture_free alone, at any point, undoes everything.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"
#include "base/parse.h"
#include "daemon/capture/samples/sampler.h"
#include "daemon/capture/tracefs/tracefs.h"
#include "traced/stream.h"

/* What a capture takes from its surroundings; borrowed, outlives the captures. */
struct capture_env {
	struct tracefs *tracefs;
	const char *proc;      /* "/proc", or a fixture's folder */
	const char *state_dir; /* where journals lie; exists, writable by nobody else */
	const char *sys;       /* "/sys", or a fixture's folder; NULL: "/sys" */
};

/* The instances of a recording are called traced-PID-NAME and traced-PID-NAME-tasks. */
#define CAPTURE_INSTANCE_PREFIX "traced-"
/* The process that made an instance, by its name; 0: not one of ours. */
pid_t capture_instance_owner(const char *instance);

struct capture_event_spec {
	const char *glob;   /* "sched", "irq:*", "sched:sched_switch", "sched_switch", "*:*" */
	const char *filter; /* the kernel's filter language, or NULL */
};

struct capture_words {
	const char *const *items;
	size_t count;
};

/* Globs of events: what whoever asks may record. All 0: everything. */
struct capture_event_bounds {
	struct capture_words only;  /* none: all */
	struct capture_words never; /* of those */
};

/* What recording may cost, and what goes before it costs more: overhead.h. All 0: no bound. */
struct capture_overhead {
	unsigned cpu_permille;	   /* of one CPU's time */
	struct capture_words shed; /* globs of events, the first to go first */
};

/* What the kernel's function tracers are asked for. All 0: nothing. */
struct capture_functions {
	const char *tracer;	    /* "function", "function_graph"; NULL: none */
	struct capture_words only;  /* globs, "GLOB:mod:MODULE", "GLOB:COMMAND" (traceoff, ...) */
	struct capture_words never; /* globs */
	struct capture_words roots; /* function_graph: only what these call */
	unsigned depth;		    /* function_graph: of calls; 0: all */
};

enum capture_reader {
	CAPTURE_READER_AUTO, /* splice, else read: docs/architecture.md says why not mmap */
	CAPTURE_READER_MMAP,
	CAPTURE_READER_SPLICE,
	CAPTURE_READER_READ,
};

struct capture_request {
	const char *name; /* of the session: [A-Za-z0-9_.-]{1,64} */
	const struct capture_event_spec *events;
	size_t event_count;
	struct capture_event_bounds bounds; /* of what the specs may mean */
	struct capture_functions functions;
	struct capture_words kprobes, uprobes; /* definitions: probes.h */
	/* Of the probe at the same place, "": none; may be fewer. */
	struct capture_words kprobe_filters, uprobe_filters;
	struct capture_words options; /* trace options: "func_stack_trace", "noirq-info" */
	bool top_level;	   /* the top-level buffer instead of an instance; -EBUSY: it is in use */
	const pid_t *pids; /* only these tasks; NULL: all */
	size_t pid_count;
	bool follow_forks;	    /* and their children */
	const char *clock;	    /* NULL: "boot" */
	uint64_t buffer_bytes;	    /* per CPU; 0: the default of 4 MiB */
	const struct cpu_set *cpus; /* NULL: all */
	bool ring;		    /* flight recorder: nothing is read until a snapshot */
	bool tgid;		    /* remembered in the header for the exporter */
	bool streamed; /* an exporter follows: part-filled sub-buffers are taken, too, with FLUSH */
	struct sampling sampling; /* beside the trace; not in ring mode, nor streamed */
	enum capture_reader reader;
	const char *const *command; /* for the header only; NULL-terminated or NULL */
	uint64_t duration_ns;	    /* for the header only */
	struct capture_overhead overhead;
	uint64_t stream_limit; /* no stream beyond this many bytes; 0: none */
};

struct capture_cpu_stats {
	unsigned cpu;
	/*
	 * By the kernel's own count. In ring mode what the ring holds counts as
	 * events, and what it overwrites is not lost: that is its way.
	 */
	uint64_t events; /* read from the ring so far */
	uint64_t lost;	 /* overrun + commit overrun + dropped */
	uint64_t bytes;	 /* moved to the stream */
	bool offline;
};

struct capture_stats {
	uint64_t start_boot_ns;	      /* 0: not started */
	uint64_t events, lost, bytes; /* sums; bytes of the whole stream */
	uint64_t overwritten;	      /* ring mode: not lost, but made room */
	unsigned event_types;	      /* enabled */
	const char *reader;	      /* "mmap", "splice", "read" */
	const char *instance;	      /* of the main buffer */
	size_t cpu_count;
	const struct capture_cpu_stats *cpus; /* borrowed, valid until the next call */
	size_t warning_count;
	const char *const *warnings; /* what could not be done as asked; borrowed */
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
};

struct capture;

/*
 * Errors name what was asked for: -ENOENT for a glob that matches no event
 * (the hint has the nearest names), -EPERM for one of which the bounds leave none, -EINVAL with the
 * kernel's error_log for a filter or a clock that it refuses, -EEXIST for a name in use, -ENOMEM
 * for buffers that don't fit, -EPERM under lockdown.
 */
int capture_new(struct capture **ret, const struct capture_env *env,
		const struct capture_request *request, struct error *err);

/* Turns tracing on. stream_fd is borrowed until capture_stop; -1 in ring mode. */
int capture_start(struct capture *c, int stream_fd, struct error *err);

/* Readable (epoll) when some CPU's ring is worth reading; stays the same descriptor. */
int capture_fd(const struct capture *c);
/* CLOCK_BOOTTIME ns by which capture_dispatch wants to be called even so. */
uint64_t capture_deadline(const struct capture *c);
/*
 * Moves what the rings hold to the stream, within a page budget, and does the
 * periodic work. 0: nothing more to do now; 1: call again soon, the budget
 * was used up (through the event loop: where much is traced the recorder's own
 * work fills the rings again, and a loop around it might not end). -ENOSPC,
 * -EDQUOT, -EPIPE...: the stream takes no more.
 */
int capture_dispatch(struct capture *c, struct error *err);

/* How many FLUSH chunks the stream of a streamed recording has so far. */
uint64_t capture_flushes(const struct capture *c);

/*
 * Tracing off, rings drained, END written, the rest even if one of them fails: the
 * error comes last. In ring mode use capture_snapshot first.
 */
int capture_stop(struct capture *c, enum capture_end reason, struct error *err);

/*
 * Ring mode: a whole stream of what the rings hold now; recording goes on. What
 * is read leaves the ring, so a snapshot holds what came since the one before.
 */
int capture_snapshot(struct capture *c, int stream_fd, enum capture_end reason, struct error *err);

/* Bytes; the kernel before 6.8 cuts at about a kilobyte. */
#define CAPTURE_MARK_MAX 1000
/* Writes text to the instance's trace_marker. -EMSGSIZE: it is longer than CAPTURE_MARK_MAX. */
int capture_mark(struct capture *c, const char *text, struct error *err);

#define CAPTURE_SYNC_ID_MAX 128 /* letters, digits, '-' and '_', as viewers want it */
#define CAPTURE_SYNCS_MAX 1024
struct capture_sync {
	uint64_t before_ns, after_ns; /* CLOCK_BOOTTIME */
};
bool capture_sync_id_valid(const char *id);
/*
 * Ties another clock to the recording's: writes the mark "trace_event_clock_sync: name=ID" between
 * the two readings, which the stream keeps, with one of all clocks. -EINVAL: such an id can't be;
 * -EEXIST: the recording has it already; -ENOSPC: it takes no more.
 */
int capture_sync(struct capture *c, const char *id, struct capture_sync *ret, struct error *err);

/*
 * Puts a chunk of somebody else's into the stream: of marks. -EOPNOTSUPP in ring mode,
 * where there is none. An error that ends the stream is told by the next dispatch, too.
 */
int capture_append(struct capture *c, enum chunk_type type, const struct iovec *iov, int count);
/* Has the stream say something that nothing of what was asked for is missing for. As
 * capture_append.
 */
int capture_note(struct capture *c, const char *text);

void capture_get_stats(struct capture *c, struct capture_stats *ret);

struct capture *capture_free(struct capture *c);
DEFINE_CLEANUP_FUNC(struct capture *, capture_free);

/*
 * Drains what an existing buffer holds (instance NULL: the top-level one) into
 * a whole stream; touches no setting of it. -ENOENT: no such instance;
 * -EBUSY: somebody else is reading it.
 */
int capture_extract(const struct capture_env *env, const char *instance, int stream_fd,
		    struct capture_stats *ret, struct error *err);

/*
 * Undoes what crashed predecessors left: each journal in state_dir whose owner
 * is gone. Returns the number of instances removed or settings restored.
 */
int capture_recover(const struct capture_env *env, struct error *err);
