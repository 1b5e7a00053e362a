/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Begins of complete marks (X). A program writes one at its end, so an outer one follows those that
 * it encloses. Of equal begins readers take the first one in the file for the outer one. So the
 * outer one begins 1 ns earlier.
 */
#pragma once

#include "base/table.h"
#include "marks/mark.h"

/* Slices of a thread that no other one encloses so far; older ones are forgotten. */
#define NESTED_MAX 16

struct nested_thread {
	bool used;
	int32_t pid, tid;
	unsigned count;
	struct nested_slice {
		uint64_t begin, written; /* the mark's, and what was written */
		bool open;		 /* a B without its E */
	} slices[NESTED_MAX];
};
DECLARE_TABLE(nested_threads, struct nested_thread);
void nested_threads_deinit(struct nested_threads *t);

/* Call it for each mark in order. Returns the begin to write: that of the mark, or earlier. */
uint64_t nested_begin(struct nested_threads *t, const struct mark *mark);
