/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Captures of several machines, that are exported one after the other on one clock. */
#pragma once

#include "export/export.h"
#include "input.h"
#include "trace/host_clock.h"
#include "trace/host_numbers.h"

#define HOST_PARTS_MAX 64

struct host_input {
	int fd;		  /* seekable */
	const char *path; /* for messages */
};

struct host_part {
	struct host_input *input;
	struct input_beside beside;
	struct host_origin origin;
	struct host_numbers numbers; /* where readers know no machines */
	int fd;			     /* its part of a joined file */
	bool has_arrows;	     /* as this machine of the arrows */
	uint32_t machine;
	const char *unplaced; /* why it can't be with the others; NULL: it can */
	char tie[160];
};

/* Imports the inputs, and gives each part a label of its own. 0 or -errno. */
int host_parts_open(struct host_part *parts, size_t count, struct error *err);
/*
 * Ties all clocks to one: that of the machine that asked for the first tied capture. result gets
 * warnings of what the parts do not say of themselves. 0 or -ENOMEM.
 */
int host_parts_place(struct host_part *parts, size_t count, struct export_result *result);
/* Fills in the options of its export. -EINVAL: it is unplaced. */
int host_part_options(const struct host_part *p, struct export_options *o, struct error *err);
/* A warning of one machine. 0 or -ENOMEM. */
int host_part_add_warning(struct export_result *to, const char *label, const char *warning);
/* Adds the outcome of a part's export, whose warnings get its label. 0 or -ENOMEM. */
int host_part_add_result(struct export_result *to, const char *label,
			 const struct export_result *part);
