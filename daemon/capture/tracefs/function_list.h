/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's traceable functions, and parsing of the filters that select them. */
#pragma once

#include <stdbool.h>

#include "daemon/capture/tracefs/tracefs.h"

/* The kernel calls a tracepoint's probes by a function of this name and the tracepoint's. */
#define TRACEPOINT_FUNCTION "__traceiter_"

struct function_list {
	struct buf text;      /* available_filter_functions, split into words */
	const char **names;   /* point into text */
	const char **modules; /* module of names[i]; NULL: the kernel itself */
	size_t count;
};
/*
 * -EPERM: the kernel is locked down; -EACCES: the caller is not root; -ENOENT: the kernel cannot
 * trace functions.
 */
int function_list_read(struct function_list *ret, const struct tracefs *fs, struct error *err);
void function_list_deinit(struct function_list *l);
#define _cleanup_function_list_ _cleanup_(function_list_deinit)

/* One filter as in set_ftrace_filter: [!]GLOB, [!][GLOB]:mod:MODULE, GLOB:COMMAND[:PARAMETER...] */
struct function_word {
	bool negated;
	char glob[256];
	char module[128];	/* "": any */
	char command[32];	/* "": a filter; "traceoff", ... */
	const char *parameters; /* the command's, points into the word; NULL: none */
};
int function_word_parse(struct function_word *ret, const char *word, struct error *err);

bool function_matches(const struct function_list *l, size_t i, const struct function_word *word);
bool function_any_matches(const struct function_list *l, const struct function_word *word);
bool function_module_is_loaded(const struct function_list *l, const char *module);
/* Returns -ENOENT; the hint has the nearest names. */
int function_no_match(const struct function_list *l, const struct function_word *word,
		      struct error *err);
