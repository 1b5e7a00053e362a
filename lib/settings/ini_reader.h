/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads an INI file by libinih, whose handler does not get the line number. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct ini_reader {
	FILE *file;	  /* borrowed */
	const char *path; /* for messages; borrowed */
	/* Takes one assignment: 0, or a negative errno with err set, which ends the reading. */
	int (*take)(struct ini_reader *reader, const char *section, const char *name,
		    const char *value);
	struct error *err;
	/* While take() runs: */
	unsigned line;
	bool is_continued; /* the line is indented: it goes on with the key before it */
	/* Private: */
	bool ends_within_line;
	int failed;
};

/* Returns 0, or a negative errno with an error that names file and line. */
int ini_read(struct ini_reader *reader);
