/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports on what another command recorded. */
#pragma once

#include "cli.h"
#include "report/report.h"

/*
 * Runs work() with options that make it write a capture stream, to o->output or an unnamed file,
 * and prints the reports that o->reports names. Returns work()'s exit status, or if that is 0 the
 * report's.
 */
int report_after(const struct options *o, int (*work)(const struct options *o));
/* Checks the options of report_after(). 0 or -errno. */
int report_after_check(const struct options *o, struct error *err);
/*
 * The reports that o->reports names, on what hosts recorded. several: the command named several
 * hosts. Returns the exit status.
 */
int report_after_hosts(const struct options *o, char *const *paths, size_t count, bool several);
bool report_is_name(const char *word);
/* Adds up the reports in the files of --merge and the arguments. Returns the exit status. */
int report_merge_files(const struct options *o, const struct report_options *options);
