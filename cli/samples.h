/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What convert has beside the capture for samples: profiles, and names of programs' functions. */
#pragma once

#include "base/parse.h"
#include "cli.h"
#include "export/export.h"

struct code_symbols;

struct samples {
	struct export_profile profiles[EXPORT_MERGES_MAX];
	size_t profile_count;
	int scratch_fd;		   /* owned; 0: none */
	struct code_symbols *code; /* owned */
	struct export_symbols symbols;
	struct cpu_set cpus;
	struct export_sample_filter filter;
};

/* Opens all that o names. */
int samples_open(struct samples *ret, const struct options *o, struct error *err);
/* Says what the names that were found can't be trusted for. */
void samples_tell(const struct samples *s);
void samples_deinit(struct samples *s);
#define _cleanup_samples_ _cleanup_(samples_deinit)
