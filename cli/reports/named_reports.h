/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The reports that a command line names. */
#pragma once

#include "cli.h"
#include "report/report.h"

struct named_reports {
	struct report_options options; /* its names are in `names` */
	const char *names[REPORTS_MAX];
	char *words; /* owned; the names point into it */
};

/*
 * Takes o's options of reports, and the names: each word may be several, with commas. ret must not
 * move. 0, -EINVAL or -ENOMEM; call named_reports_deinit() in any case.
 */
int named_reports_init(struct named_reports *ret, const struct options *o, const char *const *words,
		       size_t count, struct error *err);
void named_reports_deinit(struct named_reports *n);
#define _cleanup_named_reports_ _cleanup_(named_reports_deinit)
