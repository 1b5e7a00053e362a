/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tracectl. A table of options and a table of commands drive parser, help and completion: a new
 * command is one file and one line in commands.c. All but main() is in a library, for the tests.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "daemon/capture/plan/probe_kind.h"
#include "export/export.h"

/* Exit status of every command. */
enum {
	CLI_WHOLE = 0,	 /* done, nothing is missing */
	CLI_FAILED = 1,	 /* no file was written under the requested name */
	CLI_USAGE = 2,	 /* wrong command line; nothing was tried */
	CLI_MISSING = 3, /* written, but incomplete; stderr says what is missing */
	CLI_NOTHING = 4, /* wait: no condition was met */
};

/* Kinds of words on the command line, for completion. */
enum completion {
	COMPLETE_NOTHING,
	COMPLETE_FILE,
	COMPLETE_EVENT,
	COMPLETE_SESSION,
	COMPLETE_FORMAT,
	COMPLETE_CLOCK,
	COMPLETE_PROFILE,
	COMPLETE_POLL,
	COMPLETE_INSTANCE,
	COMPLETE_COMMAND, /* a command of tracectl */
	COMPLETE_SHELL,
};

/* Help lists a command's options by groups, in this order. */
enum option_group {
	GROUP_WHAT,
	GROUP_WHEN,
	GROUP_WHERE,
	GROUP_REPORTS,
	GROUP_COST,
	GROUP_RARE,
	GROUP_GENERAL,
	GROUP_COUNT,
};

enum option_id {
	OPT_DURATION,
	OPT_OUTPUT,
	OPT_FORMAT,
	OPT_EVENT,
	OPT_FILTER,
	OPT_TRIGGER,
	OPT_PROFILE,
	OPT_TRACER,
	OPT_FUNCTION,
	OPT_NOT_FUNCTION,
	OPT_GRAPH_ROOT,
	OPT_GRAPH_DEPTH,
	OPT_TRACER_OPTION,
	OPT_STOP_US,
	OPT_TRACE_OPTION,
	OPT_SQL,
	OPT_AS,
	OPT_KPROBE,
	OPT_UPROBE,
	OPT_HIST,
	OPT_KEY,
	OPT_VAL,
	OPT_BUCKETS,
	OPT_ENTRIES,
	OPT_FPROBE,
	OPT_TPROBE,
	OPT_EPROBE,
	OPT_TOP_LEVEL,
	OPT_PID,
	OPT_THREAD,
	OPT_FOLLOW,
	OPT_CPUS,
	OPT_CLOCK,
	OPT_BUFFER,
	OPT_SAMPLE,
	OPT_SAMPLE_EVENT,
	OPT_CALL_GRAPH,
	OPT_POLL,
	OPT_MAX_CPU,
	OPT_SHED,
	OPT_MAX_MEMORY,
	OPT_RING,
	OPT_STREAM,
	OPT_ROTATE,
	OPT_SPLIT,
	OPT_KEEP,
	OPT_ON,
	OPT_BEFORE,
	OPT_AFTER,
	OPT_AT_MOST,
	OPT_MAX_SIZE,
	OPT_HOOK,
	OPT_NAME,
	OPT_STATUS,
	OPT_INSTANCE,
	OPT_LAST_BOOT,
	OPT_SIZE,
	OPT_WRITE,
	OPT_TGID,
	OPT_NET_ARROWS,
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
	OPT_FROM,
	OPT_TO,
	OPT_COMM,
	OPT_SYMBOLS,
	OPT_JSON_ARRAY,
	OPT_HTML_MAX,
	OPT_SYNC_FILE,
	OPT_SYNC_BOUND,
	OPT_REPORT,
	OPT_SESSION,
	OPT_BY,
	OPT_SORT,
	OPT_TOP,
	OPT_MIN,
	OPT_TASK,
	OPT_SUMMARY,
	OPT_WATCH,
	OPT_BATCH,
	OPT_DECAY,
	OPT_FIELDS,
	OPT_PROBE,
	OPT_CSV,
	OPT_JSON,
	OPT_QUIET,
	OPT_VERBOSE,
	OPT_CONTROL,
	OPT_PHC,
	OPT_HOST,
	OPT_HOSTS,
	OPT_LABEL,
	OPT_REQUIRE_ALL,
	OPT_PUSH,
	OPT_FLEET,
	OPT_GROUP,
	OPT_SHARE,
	OPT_SALT,
	OPT_WINDOW,
	OPT_NOT_BEFORE,
	OPT_EXPIRES,
	OPT_SERIAL,
	OPT_CAPTURE,
	OPT_SECRET_KEY,
	OPT_PRESIGN,
	OPT_URL,
	OPT_CURL,
	OPT_S3,
	OPT_BROKER,
	OPT_SOCKET,
	OPT_VERSION,
	OPT_HELP,
	OPT_COUNT,
};
struct option_set {
	bool has[OPT_COUNT];
};
#define OPTION(id) [OPT_##id] = true
#define OPTION_SET(...)                                                                            \
	{                                                                                          \
		.has = { __VA_ARGS__ }                                                             \
	}

struct event_option {
	const char *glob;
	const char *filter; /* NULL: none */
};

struct probe_option {
	enum probe_kind_id kind;
	const char *definition;
	const char *filter; /* NULL: none */
};

/* A trigger of the kernel; those of tracectl are conditions (on). */
struct trigger_option {
	const char *event; /* a glob; NULL: the probe's */
	size_t probe;	   /* number, from 1, of one of the probes */
	const char *action;
	char *text; /* owned: the event's name, if the option has it; or NULL */
};

struct sql_option {
	const char *text;
	const char *name; /* NULL: not given */
};

/* A key of a histogram. */
struct key_option {
	const char *field;
	const char *modifier; /* owned, "buckets=100"; NULL: none */
	uint64_t bucket_ns;   /* not 0: the buckets were given as a time */
};

struct merge_option {
	const char *path;
	const char *syncs; /* file with clock_sync events; NULL: only its own */
	const char *clock; /* NULL: not given */
};

/* An option as it was typed. */
struct typed_option {
	int id;
	const char *value; /* NULL: takes none */
};

struct word_list {
	const char **items; /* owned; the strings are argv's */
	size_t count;
};

/* Parsed command line. Strings are argv's. */
struct options {
	const char *socket;
	const char *output, *format;
	const char *clock, *cpus, *profile, *name, *instance;
	enum function_view function_view;
	const char *generic, *compact_sched, *compress; /* for a Perfetto trace; NULL: not given */
	uint64_t duration_ns;				/* 0: not given */
	uint64_t buffer_bytes;				/* 0: not given */
	uint64_t rotate_bytes, rotate_ns;		/* 0: not given */
	uint64_t max_memory;				/* bytes; 0: not given */
	unsigned max_cpu_permille;			/* per CPU; 0: not given */
	unsigned keep;					/* number of files; 0: all */
	struct word_list on;				/* conditions of triggers */
	uint64_t before_ns, after_ns;			/* of a snapshot; 0: not given */
	uint64_t at_most_ns;				/* 0: not given */
	unsigned at_most;				/* snapshots within at_most_ns */
	uint64_t max_size;				/* bytes of all snapshots; 0: not given */
	const char *hook;				/* NULL: not given */
	struct event_option *events;
	size_t event_count;
	struct probe_option *probes;
	size_t probe_count;
	struct sql_option *sql;
	size_t sql_count;
	struct word_list hists, vals; /* histograms, and values of one */
	struct key_option *keys;
	size_t key_count;
	struct key_option lone_buckets; /* before any key; without a field */
	bool counts_sql;		/* the last SQL is for a histogram alone */
	bool of_recording;	 /* filters are of recorded events, whatever they look like */
	const char *lone_filter; /* a filter before any event; NULL: none */
	uint32_t entries;	 /* of a histogram; 0: not given */
	bool filter_is_probes;	 /* the next -f or --trigger is the last probe's, not the event's */
	struct trigger_option *triggers;
	size_t trigger_count;
	struct merge_option *merges;
	size_t merge_count;
	uint64_t sync_bound_ns; /* 0: not given */
	int32_t *pids, *threads;
	size_t pid_count, thread_count;
	const char *tracer;
	struct word_list cpu_profiles;
	struct moment from, to;
	struct word_list event_filters; /* "EVENTS: EXPRESSION", for recorded events */
	const char *comm;		/* NULL: not given */
	const char *symbols;		/* a folder; NULL: not given */
	const char *session;		/* to report on; NULL: not given */
	struct word_list reports;
	struct word_list functions, not_functions, graph_roots, trace_options, shed, polls;
	struct word_list tracer_options;	/* "period=1ms" */
	uint32_t graph_depth, stop_us;		/* 0: not given */
	uint32_t sample_hz;			/* 0: not given */
	const char *sample_event;		/* NULL: not given */
	const char *begin, *end, *counter, *id; /* for marks and syncs; NULL: not given */
	const char *by, *sort, *task;		/* of reports; NULL: not given */
	uint64_t top, min_ns;			/* of reports; 0: not given */
	uint64_t size; /* bytes of the boot recorder's ring; 0: not given */
	bool watch, batch, decay, fields, probe, csv, summary, last_boot, write;
	const char *shown;   /* the output's name in messages; NULL: its own */
	bool report_follows; /* it says what is missing in the recording */
	const char *of_host; /* the machine that warnings are of; NULL: this one, or several */
	const struct word_list *told; /* "HOST: WARNING" that were printed; NULL: none */
	bool whole;		      /* the options that choose a part said what to record */
	bool own_status;	      /* of a recorded command's status, only our part counts */
	bool top_level, call_graph;
	struct export_page page;
	bool follow, ring, stream, tgid, raw_addresses, json_array, net_arrows, fail_on_loss;
	bool json, quiet, help, version;
	bool control;	  /* record: orders come on standard input */
	bool packs;	  /* with control: the capture is compressed on its way */
	const char *phc;  /* "CLOCK,TIME"; NULL: not given */
	bool require_all; /* of the hosts */
	bool push;	  /* send them the program */
	const char *push_from;
	/* For `fleet`, as they were typed; NULL: not given */
	const char *fleet, *group, *share, *salt, *window, *not_before, *expires, *serial;
	const char *presign;	      /* file of the key that signs uploads */
	const char *secret_key, *url; /* of signify; of a store or an order */
	const char *broker;
	const char *curl; /* curl's configuration */
	bool capture, s3;
	struct word_list hosts, host_files, labels;
	struct typed_option *typed; /* owned; all, in their order */
	size_t typed_count, typed_cap;
	unsigned verbose;
	char **args; /* positional; NULL-terminated */
	size_t arg_count;
	char **command; /* arguments after "--"; NULL: none */
};

void options_deinit(struct options *o);
#define _cleanup_options_ _cleanup_(options_deinit)

struct option_spec {
	char letter;	  /* 0: none */
	const char *name; /* without dashes */
	const char *arg;  /* name of its value in help; NULL: takes no value; "[=PATH]": it may */
	const char *help;
	enum option_group group;
	enum completion complete;
	int (*set)(struct options *o, const char *value, struct error *err);
};
extern const struct option_spec option_specs[OPT_COUNT];

/* Help on an option that means something else to this command. */
struct option_text {
	int id;
	const char *text;
};

struct command {
	const char *name;
	const char *synopsis; /* help: after the command's name */
	const char *summary;  /* help: one line for the list */
	const char *text;     /* help: paragraphs */
	struct option_set options;
	struct option_set own; /* those that only this command has: help shows them first */
	const struct option_text *texts; /* NULL, or ended by text NULL */
	unsigned args_min, args_max;
	bool takes_command; /* "-- COMMAND" */
	bool hidden;
	enum completion complete;
	const char *const *words; /* NULL, or what completion offers instead; ended by NULL */
	int (*run)(const struct options *o);
};
const struct command *const *commands(size_t *ret_count);
const struct command *command_find(const char *name);

/* Options of every command; command NULL: before a command. */
bool command_takes(const struct command *command, int id);
#define OPTIONS_FUNCTIONS                                                                          \
	OPTION(TRACER), OPTION(FUNCTION), OPTION(NOT_FUNCTION), OPTION(GRAPH_ROOT),                \
		OPTION(GRAPH_DEPTH), OPTION(TRACER_OPTION), OPTION(STOP_US), OPTION(TRACE_OPTION), \
		OPTION(TOP_LEVEL), OPTION(KPROBE), OPTION(UPROBE), OPTION(FPROBE), OPTION(TPROBE), \
		OPTION(EPROBE), OPTION(TRIGGER), OPTION(SQL), OPTION(AS)
#define OPTIONS_TASKS OPTION(PID), OPTION(THREAD), OPTION(FOLLOW)
/* Buffers and limits of resources. */
#define OPTIONS_COST OPTION(BUFFER), OPTION(MAX_CPU), OPTION(SHED), OPTION(MAX_MEMORY)
/* Choices of the output formats. */
#define OPTIONS_FORMATS                                                                            \
	OPTION(FUNCTION_VIEW), OPTION(JSON_ARRAY), OPTION(HTML_MAX), OPTION(GENERIC),              \
		OPTION(COMPACT_SCHED), OPTION(COMPRESS)
#define OPTIONS_MERGE OPTION(MERGE), OPTION(MERGE_CLOCK), OPTION(SYNC_FILE), OPTION(SYNC_BOUND)
#define OPTIONS_SAMPLES OPTION(SAMPLE), OPTION(SAMPLE_EVENT), OPTION(CALL_GRAPH)
/* Options for data beside the trace. */
#define OPTIONS_BESIDE OPTIONS_SAMPLES, OPTION(POLL)
/* Choices of a part of a recording. */
#define OPTIONS_SELECTION                                                                          \
	OPTION(FROM), OPTION(TO), OPTION(CPUS), OPTION(PID), OPTION(THREAD), OPTION(COMM),         \
		OPTION(EVENT), OPTION(FILTER)
#define OPTIONS_ROTATE OPTION(ROTATE), OPTION(KEEP)
#define OPTIONS_TRIGGERS                                                                           \
	OPTION(ON), OPTION(BEFORE), OPTION(AFTER), OPTION(AT_MOST), OPTION(MAX_SIZE), OPTION(HOOK)

/*
 * Parses argv[1..] with the command's options, keeping earlier values. command NULL: the
 * options before a command; then it stops at the first positional, whose index is
 * *ret_next. 0, or -EINVAL with the most similar option as hint.
 */
int options_parse(struct options *o, int argc, char **argv, const struct command *command,
		  int *ret_next, struct error *err);
/* Checks combinations of options and the number of arguments. */
int options_check(const struct options *o, const struct command *command, struct error *err);

/* Prints the error and hint; prints nothing for EPIPE (the reader left). Returns CLI_FAILED. */
int cli_fail(const struct error *err);
/* As cli_fail(), for a wrong command line. Returns CLI_USAGE. */
int cli_usage(const struct error *err);
/*
 * Print text from a trace or from the daemon only by these (or buf_visible()): they escape control
 * characters and newlines.
 */
/* Flushes stdout. False: output was lost; an error is printed, unless the reader left. */
bool cli_flush(void);
/* The same without a message: 0 or -errno. */
int cli_try_flush(struct error *err);
/* Prints one line "tracectl: ..." to stderr. */
void cli_warn(const char *fmt, ...) _printf_(1, 2);
/* As cli_warn(), for text from elsewhere: truncates it. */
void cli_pass_on(const char *warning);
/* Prints one line and adds the newline. */
void cli_line(FILE *to, const char *fmt, ...) _printf_(2, 3);

void help_overview(void);
void help_command(const struct command *command);

/* The whole program. */
int tracectl_main(int argc, char **argv);

extern const struct command command_record, command_start, command_stop, command_snapshot,
	command_cancel, command_wait, command_attach, command_status, command_list, command_mark,
	command_sync, command_boot_recorder, command_extract, command_convert, command_events,
	command_profiles, command_doctor, command_recover, command_report, command_top,
	command_hist, command_fleet, command_help, command_complete;
