/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * traced.conf and its drop-ins, as in systemd: the main file, then the files of <file>.d that end
 * in ".conf", in order of name. A later assignment wins; a list grows, and an empty assignment
 * clears it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "settings/string_list.h"

#define CONFIG_FILE TRACED_SYSCONFDIR "/traced.conf"

enum user_functions {
	USER_FUNCTIONS_NO,
	USER_FUNCTIONS_OWN, /* functions in the user's own processes */
	USER_FUNCTIONS_YES,
};

/* Users to whom something is allowed, beside root. */
struct user_list {
	bool all;
	uid_t *uids; /* owned */
	size_t count;
};
bool user_list_has(const struct user_list *l, uid_t uid);

/* Limits of each user except root; 0 is no limit. */
struct user_rules {
	unsigned clients, sessions;
	uint64_t buffer_memory; /* bytes of the kernel's ring buffers, over all CPUs and sessions */
	uint64_t spool_max;	/* bytes of all recordings not written out yet */
	uint64_t duration_max;	/* ns */
	struct user_list raw_addresses;
	bool top_level;
	int functions;			   /* enum user_functions */
	struct string_list events_allowed; /* empty: all */
	struct string_list events_denied;
};

/* Whether the instances of the next recording are made in advance. */
enum config_spare {
	SPARE_AUTO, /* a small one if memory is short, none before Linux 6.6 */
	SPARE_NO,
	SPARE_YES,
};

struct config {
	/* [daemon] */
	char *socket, *spool_dir, *state_dir;
	char *metrics; /* metrics file for Prometheus; NULL: none */
	char *hooks;   /* folder of programs that clients' triggers may start; NULL: none */
	int log_level; /* as in syslog(3) */
	bool marks;    /* record applications' marks */
	int spare;     /* enum config_spare */
	/* [limits] */
	unsigned clients, sessions;
	uint64_t spool_max;    /* bytes of one recording; 0: no limit but the file system's */
	uint64_t min_free;     /* bytes that must stay free in spool_dir */
	uint64_t duration_max; /* ns; 0: none */
	unsigned mark_programs, mark_rings; /* limits per user */
	uint64_t mark_memory;		    /* bytes of one user's rings */
	uint64_t mark_rate;		    /* bytes per second of one user's marks; 0: no limit */
	struct user_rules users;	    /* [users] */
	/* [defaults] */
	uint64_t buffer_size; /* bytes per CPU */
	char *clock;
	int reader; /* enum capture_reader */
	struct string_list events;
	char *poll; /* files that recordings poll; NULL: none */
};

/* Size of the RAM in bytes; 0: unknown. */
uint64_t machine_memory(void);

/* Sets the built-in values. */
int config_init(struct config *c);
void config_deinit(struct config *c);
#define _cleanup_config_ _cleanup_(config_deinit)

/*
 * Reads path and its drop-ins into c. A missing file counts as empty, unless must_exist. Appends
 * warnings (lines of "file:line: text"). An invalid value is an error that names file and line.
 */
int config_load(struct config *c, const char *path, bool must_exist, struct buf *warnings,
		struct error *err);
/*
 * For other programs: reads CONFIG_FILE into a new config. The daemon reports a faulty file; here
 * it counts as empty. 0 or -ENOMEM.
 */
int config_load_usual(struct config *ret);

/* text: "debug", "info", "notice", "warning", "error" or a number of syslog(3). -EINVAL. */
int log_level_parse(const char *text);
