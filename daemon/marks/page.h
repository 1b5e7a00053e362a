/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The page by which every program on the machine sees whether anybody records: a file
 * that programs have mapped, perhaps since before this daemon. So a file that is there
 * is used on, and one that goes says so in itself first.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "traced/mark_ring.h"

struct marks_page_file {
	struct marks_page *page; /* mapped; NULL: none */
	char *path;		 /* owned */
	uint32_t generation;	 /* the last one */
	bool made;		 /* it was not there before */
	bool transient;		 /* it goes with this daemon */
};

/*
 * Opens or makes path, and says that nobody records. transient: it goes when it is closed, if it
 * was not there before, or such a daemon left it that was killed.
 */
int marks_page_open(struct marks_page_file *ret, const char *path, bool transient,
		    struct error *err);
void marks_page_close(struct marks_page_file *f);

/* A recording begins: the number that its records come after. */
uint32_t marks_page_begin(struct marks_page_file *f);
/* No recording goes on. */
void marks_page_end(struct marks_page_file *f);
