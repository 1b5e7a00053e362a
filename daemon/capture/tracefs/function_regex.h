/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Regular expressions for functions' names: POSIX extended ones without counts ({2}) and classes
 * ([:alpha:]). Users of the daemon write them, so time and memory have a bound: a match takes at
 * most REGEX_POSITIONS_MAX steps for each byte of the name, which no library promises.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Characters of an expression; a class, '.', '^' or '$' counts as one. */
#define REGEX_POSITIONS_MAX 64

/* A Glushkov automaton: its states are the expression's characters, each a bit. */
struct function_regex {
	unsigned count;
	uint64_t first, last;
	uint64_t follow[REGEX_POSITIONS_MAX];
	uint64_t takes[256]; /* by byte: the characters that it may be */
	bool empty;	     /* it matches the empty text, thus any */
};

/* text: without the slashes. -EINVAL: not such an expression; -E2BIG: too long. */
int function_regex_compile(struct function_regex *ret, const char *text, size_t len,
			   struct error *err);
/* True if a part of the name matches; '^' and '$' are its ends. */
bool function_regex_matches(const struct function_regex *re, const char *name);
