/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A shared page that shows every program on the machine whether anybody records. Programs may have
 * mapped the file before this daemon started. So an existing file is reused, and a file to be
 * removed is first set to "off".
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "traced/mark_ring.h"

struct marks_page_file {
	struct marks_page *page; /* mapped; NULL: no page */
	char *path;		 /* owned */
	uint32_t generation;	 /* of the latest recording */
	bool made;		 /* this daemon created it */
	bool transient;		 /* removed when this daemon ends */
};

/*
 * Opens or creates path and sets it to "nobody records". transient: removes the file on close if
 * this daemon created it, or if a killed transient daemon left it.
 */
int marks_page_open(struct marks_page_file *ret, const char *path, bool transient,
		    struct error *err);
void marks_page_close(struct marks_page_file *f);

/* Starts a recording. Returns its generation: its records are later than this number. */
uint32_t marks_page_begin(struct marks_page_file *f);
/* Call when the last recording has ended. */
void marks_page_end(struct marks_page_file *f);
