/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A report on captures of several machines: each is exported for itself, on one clock. */
#pragma once

#include "cli.h"
#include "report/report.h"

/* How many of the last arguments are inputs; more than one only for reports that take several. */
size_t report_hosts_inputs(const struct options *o);
/*
 * Writes the reports on these inputs: one of all, if it is one that takes several; otherwise those
 * of each, with its label if the command named several hosts. Returns the exit status.
 */
int report_hosts_run(const struct options *o, const struct report_options *reports,
		     char *const *paths, size_t count, bool several);
