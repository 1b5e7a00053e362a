/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tracectl. One table of options and one of commands drive the parser, the
 * help and the completion alike: a new command is one file and one line in
 * commands.c. Everything but main() is in a library, for the tests.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "export/export.h"

/* The exit status of every command. */
enum {
	CLI_WHOLE = 0,	 /* done, and nothing is missing */
	CLI_FAILED = 1,	 /* nothing was written under the name that was asked for */
	CLI_USAGE = 2,	 /* the command line is wrong; nothing was tried */
	CLI_MISSING = 3, /* written, but something is missing from it; stderr says what */
};

/* What may stand at some place of the command line: for the completion. */
enum completion {
	COMPLETE_NOTHING,
	COMPLETE_FILE,
	COMPLETE_EVENT,
	COMPLETE_SESSION,
	COMPLETE_FORMAT,
	COMPLETE_CLOCK,
	COMPLETE_PROFILE,
	COMPLETE_INSTANCE,
	COMPLETE_COMMAND, /* a command of tracectl */
	COMPLETE_SHELL,
};

enum option_id {
	OPT_DURATION,
	OPT_OUTPUT,
	OPT_FORMAT,
	OPT_EVENT,
	OPT_FILTER,
	OPT_PROFILE,
	OPT_TRACER,
	OPT_FUNCTION,
	OPT_NOT_FUNCTION,
	OPT_GRAPH_ROOT,
	OPT_GRAPH_DEPTH,
	OPT_TRACE_OPTION,
	OPT_KPROBE,
	OPT_UPROBE,
	OPT_TOP_LEVEL,
	OPT_PID,
	OPT_FOLLOW,
	OPT_CPUS,
	OPT_CLOCK,
	OPT_BUFFER,
	OPT_SAMPLE,
	OPT_SAMPLE_EVENT,
	OPT_CALL_GRAPH,
	OPT_MAX_CPU,
	OPT_SHED,
	OPT_MAX_MEMORY,
	OPT_RING,
	OPT_STREAM,
	OPT_ROTATE,
	OPT_KEEP,
	OPT_NAME,
	OPT_INSTANCE,
	OPT_TGID,
	OPT_RAW_ADDRESSES,
	OPT_FUNCTION_VIEW,
	OPT_GENERIC,
	OPT_COMPACT_SCHED,
	OPT_COMPRESS,
	OPT_FAIL_ON_LOSS,
	OPT_BEGIN,
	OPT_END,
	OPT_COUNTER,
	OPT_ID,
	OPT_MERGE,
	OPT_MERGE_CLOCK,
	OPT_CPU_PROFILE,
	OPT_CPU,
	OPT_COMM,
	OPT_SYMBOLS,
	OPT_JSON_ARRAY,
	OPT_SYNC_FILE,
	OPT_SYNC_BOUND,
	OPT_JSON,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_SOCKET,
	OPT_VERSION,
	OPT_HELP,
	OPT_COUNT,
};
#define OPTION(id) (UINT64_C(1) << OPT_##id)
_Static_assert(OPT_COUNT <= 64, "a command has a bit for each of its options");

struct event_option {
	const char *glob;
	const char *filter; /* NULL: none */
};

struct probe_option {
	const char *definition;
	const char *filter; /* NULL: none */
	bool user;	    /* of a program, not of the kernel */
};

struct merge_option {
	const char *path;
	const char *syncs; /* the file of its clock_sync events; NULL: none but its own */
	const char *clock; /* NULL: not given */
};

struct word_list {
	const char **items; /* owned; the words are argv's */
	size_t count;
};

/* All that a command line says. Strings are argv's own. */
struct options {
	const char *socket;
	const char *output, *format;
	const char *clock, *cpus, *profile, *name, *instance;
	enum function_view function_view;
	const char *generic, *compact_sched, *compress; /* of a Perfetto trace; NULL: not given */
	uint64_t duration_ns;				/* 0: not given */
	uint64_t buffer_bytes;				/* 0: not given */
	uint64_t rotate_bytes, rotate_ns;		/* 0: not given */
	uint64_t max_memory;				/* bytes; 0: not given */
	unsigned max_cpu_permille;			/* of one CPU; 0: not given */
	unsigned keep;					/* files; 0: all */
	struct event_option *events;
	size_t event_count;
	struct probe_option *probes;
	size_t probe_count;
	bool filter_is_probes; /* what the next -f belongs to: the last probe, not the last event */
	struct merge_option *merges;
	size_t merge_count;
	uint64_t sync_bound_ns; /* 0: not given */
	int32_t *pids;
	size_t pid_count;
	const char *tracer;
	struct word_list cpu_profiles;
	const char *comm;    /* of a profile's samples; NULL: not given */
	const char *symbols; /* a folder; NULL: not given */
	struct word_list functions, not_functions, graph_roots, trace_options, shed;
	uint32_t graph_depth;			/* 0: not given */
	uint32_t sample_hz;			/* the same */
	const char *sample_event;		/* NULL: not given */
	const char *begin, *end, *counter, *id; /* of marks and syncs; NULL: not given */
	bool top_level, call_graph;
	bool follow, ring, stream, tgid, raw_addresses, json_array, fail_on_loss;
	bool json, quiet, help, version;
	unsigned verbose;
	char **args; /* positional; NULL-terminated */
	size_t arg_count;
	char **command; /* what follows "--", in argv; NULL: nothing */
};

void options_deinit(struct options *o);
#define _cleanup_options_ _cleanup_(options_deinit)

struct option_spec {
	char letter;	  /* 0: none */
	const char *name; /* without the dashes */
	const char *arg;  /* what help calls its value; NULL: takes none */
	const char *help;
	enum completion complete;
	int (*set)(struct options *o, const char *value, struct error *err);
};
extern const struct option_spec option_specs[OPT_COUNT];

struct command {
	const char *name;
	const char *synopsis; /* what follows the name */
	const char *summary;  /* one line, for the list */
	const char *text;     /* help's paragraphs */
	uint64_t options;     /* OPTION(...) | ... */
	unsigned args_min, args_max;
	bool takes_command; /* "-- COMMAND" */
	bool hidden;
	enum completion complete;
	int (*run)(const struct options *o);
};
const struct command *const *commands(size_t *ret_count);
const struct command *command_find(const char *name);

/* Those that every command takes, and those that go before a command. */
#define OPTIONS_COMMON (OPTION(SOCKET) | OPTION(HELP))
#define OPTIONS_FUNCTIONS                                                                          \
	(OPTION(TRACER) | OPTION(FUNCTION) | OPTION(NOT_FUNCTION) | OPTION(GRAPH_ROOT) |           \
	 OPTION(GRAPH_DEPTH) | OPTION(TRACE_OPTION) | OPTION(TOP_LEVEL) | OPTION(KPROBE) |         \
	 OPTION(UPROBE))
/* The buffers, and what all of it may cost. */
#define OPTIONS_COST (OPTION(BUFFER) | OPTION(MAX_CPU) | OPTION(SHED) | OPTION(MAX_MEMORY))
/* What formats leave to choose. */
#define OPTIONS_FORMATS                                                                            \
	(OPTION(FUNCTION_VIEW) | OPTION(JSON_ARRAY) | OPTION(GENERIC) | OPTION(COMPACT_SCHED) |    \
	 OPTION(COMPRESS))
#define OPTIONS_MERGE (OPTION(MERGE) | OPTION(MERGE_CLOCK) | OPTION(SYNC_FILE) | OPTION(SYNC_BOUND))
#define OPTIONS_SAMPLES (OPTION(SAMPLE) | OPTION(SAMPLE_EVENT) | OPTION(CALL_GRAPH))
#define OPTIONS_ROTATE (OPTION(ROTATE) | OPTION(KEEP))
#define OPTIONS_GLOBAL (OPTIONS_COMMON | OPTION(VERSION))

/*
 * Reads argv[1..] by the options of allowed; what was set before stays.
 * stop_at_arg: the first positional ends it and *ret_next is its index.
 * Returns 0, or -EINVAL with the nearest option as the hint.
 */
int options_parse(struct options *o, int argc, char **argv, uint64_t allowed, bool stop_at_arg,
		  int *ret_next, struct error *err);
/* What parsing alone can't see: what goes together, how many arguments there are. */
int options_check(const struct options *o, const struct command *command, struct error *err);

/* Prints the error as people read it; a reader that has left (EPIPE) is told nothing. Returns
 * CLI_FAILED. */
int cli_fail(const struct error *err);
/* As cli_fail, for a wrong command line. Returns CLI_USAGE. */
int cli_usage(const struct error *err);
/*
 * All that people read of a trace or of the daemon's replies goes through these
 * (or buf_visible): what could drive the terminal or begin a line is spelled out.
 */
/* What was printed so far has arrived; false: it is lost, and why is said, but of a reader that
 * left.
 */
bool cli_flush(void);
/* One line on stderr, "tracectl: ..." */
void cli_warn(const char *fmt, ...) _printf_(1, 2);
/* As cli_warn, of a sentence that is not ours: cut where it is too long. */
void cli_pass_on(const char *warning);
/* One line, the newline added. */
void cli_line(FILE *to, const char *fmt, ...) _printf_(2, 3);

void help_overview(void);
void help_command(const struct command *command);

/* The whole program. */
int tracectl_main(int argc, char **argv);

extern const struct command command_record, command_start, command_stop, command_snapshot,
	command_cancel, command_attach, command_status, command_list, command_mark, command_sync,
	command_extract, command_convert, command_events, command_profiles, command_doctor,
	command_recover, command_help, command_complete;
