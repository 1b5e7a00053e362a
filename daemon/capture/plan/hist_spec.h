/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a histogram of the kernel is made of, as it is typed:
 *
 *	EVENT:keys=FIELD[,FIELD...][:vals=FIELD[,FIELD]][:size=ENTRIES][ if FILTER]
 *
 * A FIELD may have a modifier: "next_pid", "common_pid.execname", "bytes_req.buckets=64". This is
 * the kernel's own syntax (Documentation/trace/histogram.rst), without what changes tracing:
 * variables and actions. How entries are sorted is decided where they are shown.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/* The kernel's limits: TRACING_MAP_KEYS_MAX, and TRACING_MAP_VALS_MAX without the hitcount. */
#define HIST_KEYS_MAX 3
#define HIST_VALUES_MAX 2
/* The kernel rounds a size up to a power of two between these. */
#define HIST_SIZE_MIN 128U
#define HIST_SIZE_DEFAULT 2048U
#define HIST_SIZE_MAX (1U << 17)

struct hist_field {
	const char *name, *modifier; /* in the text, not terminated */
	size_t len, modifier_len;    /* modifier_len 0: none */
};

struct hist_spec {
	const char *text; /* borrowed; begins with the event's name */
	size_t event_len;
	struct hist_field keys[HIST_KEYS_MAX], values[HIST_VALUES_MAX];
	size_t key_count, value_count;
	unsigned size;	    /* entries */
	const char *filter; /* in the text; NULL: none */
};

/* -EINVAL: the message shows the place with a caret. */
int hist_spec_parse(struct hist_spec *ret, const char *text, struct error *err);
/* Upper bound of the kernel's memory for it, in bytes. */
uint64_t hist_spec_memory(const struct hist_spec *s);
/* Appends the trigger with a command of the kernel, "pause" or "continue". */
void hist_spec_put_trigger(const struct hist_spec *s, const char *command, struct buf *out);
/* Sets an error whose message has a caret below `at`, a place in the text. Returns code. */
int hist_spec_refuse(const struct hist_spec *s, const char *at, int code, const char *why,
		     struct error *err);
