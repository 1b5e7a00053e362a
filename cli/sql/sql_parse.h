/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SQL on two events, parsed by libtracefs in a process of its own: its parser is not made for
 * hostile text, and tracectl may be root's. That process has another user, no rights, no sockets,
 * and can open nothing for writing. It returns one text.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/* An event that the SQL may name, as its format file describes it. */
struct sql_format {
	char *system; /* owned */
	char *text;   /* owned */
};

#define SQL_EXAMPLE                                                                                \
	"write it as in: SELECT start.pid, (end.TIMESTAMP_USECS - start.TIMESTAMP_USECS) AS lat "  \
	"FROM sched_waking AS start JOIN sched_switch AS end ON start.pid = end.next_pid"

/*
 * Appends what libtracefs would type into a shell: the lines of tracefs_synth_echo_cmd(), or, if
 * counts, for SQL of one event the line of tracefs_hist_echo_cmd().
 * -EINVAL: it does not accept the SQL; err has a caret under the place. -EOPNOTSUPP: this build has
 * no libtracefs.
 */
int sql_parse(const char *name, const char *sql, bool counts, const struct sql_format *formats,
	      size_t count, struct buf *out, struct error *err);
