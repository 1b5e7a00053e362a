/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Replaces regular expressions that select functions by the functions' names. */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/tracefs/function_list.h"

/*
 * Names that expressions match, in all: the kernel compares each with all its functions, under a
 * lock.
 */
#define FUNCTION_NAMES_MAX 1024U

struct function_names {
	char **owned; /* names and "NAME:mod:MODULE" */
	size_t owned_count, owned_cap;
	const char **lists[3]; /* of only, never and roots; NULL: unchanged */
	size_t total, max;
	struct function_list functions; /* the kernel's */
	/* The list under construction, its length, and the words that it was made of so far. */
	size_t which, count, taken;
};
void function_names_deinit(struct function_names *n);
#define _cleanup_function_names_ _cleanup_(function_names_deinit)

/*
 * Replaces each "[!]/REGEX/[:mod:MODULE]" of f by what it matches now; f then points into ret.
 * Reads the kernel's list only if there is one. 1: until_ns (CLOCK_MONOTONIC) is over, and the same
 * call is to follow. -ENOENT: one matches nothing; -E2BIG: there would be more words than
 * f->names_max, or expressions match more than FUNCTION_NAMES_MAX.
 */
int function_names_expand(struct function_names *ret, const struct tracefs *fs,
			  struct capture_functions *f, uint64_t until_ns, struct error *err);
