/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The part of a recording that the command line asks for. */
#pragma once

#include "cli.h"
#include "filter/filter.h"

struct chosen_part {
	struct export_selection wanted;
	struct cpu_set cpus;
	const char **events;   /* owned */
	struct filter *filter; /* owned; or NULL */
};
#define CHOSEN_PART_INIT                                                                           \
	{                                                                                          \
		.filter = NULL                                                                     \
	}

/* Borrows from o. */
int chosen_part_open(struct chosen_part *ret, const struct options *o, struct error *err);
void chosen_part_deinit(struct chosen_part *p);
#define _cleanup_chosen_part_ _cleanup_(chosen_part_deinit)
