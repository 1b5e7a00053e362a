/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * traced.conf and its drop-ins, in systemd's manner: the main file, then
 * those of <file>.d that end in ".conf" in order of name; a later assignment wins, a list grows, an
 * empty assignment of a list starts it anew.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define CONFIG_FILE TRACED_SYSCONFDIR "/traced.conf"

/* Words of a list, NULL-terminated; owned. */
struct string_list {
	char **items;
	size_t count;
};
void string_list_deinit(struct string_list *list);
/* Appends the words of text, split at blanks and commas. */
int string_list_add_words(struct string_list *list, const char *text);
int string_list_copy(struct string_list *ret, const struct string_list *from);

enum user_functions {
	USER_FUNCTIONS_NO,
	USER_FUNCTIONS_OWN, /* of processes of theirs */
	USER_FUNCTIONS_YES,
};

/* What each user but root may; 0 is no limit. */
struct user_rules {
	unsigned clients, sessions;
	uint64_t buffer_memory; /* bytes of the kernel's ring buffers, of all CPUs and sessions */
	uint64_t spool_max;	/* bytes of all recordings that wait to be written out */
	uint64_t duration_max;	/* ns */
	bool raw_addresses, top_level;
	int functions;			   /* enum user_functions */
	struct string_list events_allowed; /* empty: all */
	struct string_list events_denied;
};

/* Whether the next recording's instances are made before it is asked for. */
enum config_spare {
	SPARE_AUTO, /* a small one where memory is short, none before Linux 6.6 */
	SPARE_NO,
	SPARE_YES,
};

struct config {
	/* [daemon] */
	char *socket, *spool_dir, *state_dir;
	char *metrics; /* file for Prometheus; NULL: none */
	int log_level; /* of syslog(3) */
	bool marks;    /* of applications are recorded */
	int spare;     /* enum config_spare */
	/* [limits] */
	unsigned clients, sessions;
	uint64_t spool_max;    /* bytes of one recording; 0: what the file system holds */
	uint64_t min_free;     /* bytes to be left free in spool_dir */
	uint64_t duration_max; /* ns; 0: none */
	unsigned mark_programs, mark_rings; /* connected; of one user */
	uint64_t mark_memory;		    /* bytes of one user's rings */
	uint64_t mark_rate;		    /* bytes a second of one user's marks; 0: any */
	struct user_rules users;	    /* [users] */
	/* [defaults] */
	uint64_t buffer_size; /* bytes per CPU */
	char *clock;
	int reader; /* enum capture_reader */
	struct string_list events;
};

/* Bytes of RAM; 0: unknown. */
uint64_t machine_memory(void);

/* The built-in values. */
int config_init(struct config *c);
void config_deinit(struct config *c);
#define _cleanup_config_ _cleanup_(config_deinit)

/*
 * Reads path and its drop-ins into c. A file that is absent is empty, unless
 * it must exist. Warnings (lines of "file:line: text") are appended; a value that
 * can't be is an error that names file and line.
 */
int config_load(struct config *c, const char *path, bool must_exist, struct buf *warnings,
		struct error *err);

/* "debug", "info", "notice", "warning", "error" or a number of syslog(3). -EINVAL. */
int log_level_parse(const char *text);
