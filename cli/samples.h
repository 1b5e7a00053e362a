/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Additional input of `convert` for samples: profiles, and function names of programs. */
#pragma once

#include "base/parse.h"
#include "cli.h"
#include "export/export.h"

struct code_opener;
struct code_symbols;

struct samples {
	struct export_profile profiles[EXPORT_MERGES_MAX];
	size_t profile_count;
	int scratch_fd;		   /* owned; 0: none */
	struct code_symbols *code; /* owned */
	struct export_symbols symbols;
};

/* Opens all files in o. opener: as for code_symbols_new(). */
int samples_open(struct samples *ret, const struct options *o, const struct code_opener *opener,
		 struct error *err);
/* Warns of names that may be wrong. */
void samples_tell(const struct samples *s);
void samples_deinit(struct samples *s);
#define _cleanup_samples_ _cleanup_(samples_deinit)
