/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The configuration that gives a kernel its features: the one table for doctor and refusals. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum feature_kind {
	FEATURE_PART,	 /* "functions", "histograms", ... */
	FEATURE_TRACER,	 /* of current_tracer */
	FEATURE_OPTION,	 /* a file in options/ */
	FEATURE_TRIGGER, /* a command of an event's triggers */
	FEATURE_PROBE,	 /* a kind of probes, by its name */
	FEATURE_EVENTS,	 /* a system of events that are there from the start */
};

/* The running kernel's version; 0: unknown. text gets its full name. proc: see capture_env. */
unsigned feature_kernel(const char *proc, struct buf *text);
#define FEATURE_KERNEL(major, minor) ((major)*1000U + (minor))

/*
 * Returns "CONFIG_X", "CONFIG_X and CONFIG_Y", "CONFIG_X, Linux 6.5" (both are needed) or "Linux
 * 6.16". NULL: the table does not have it.
 */
const char *feature_needs(enum feature_kind kind, const char *name);
/* Fills names with up to size of the table's names of this kind (no globs). Returns the count. */
size_t feature_names(enum feature_kind kind, const char **names, size_t size);
/* Appends the sentence "boot a kernel with ..."; nothing if the table does not have the feature. */
void feature_put_mend(enum feature_kind kind, const char *name, struct buf *out);
/* Makes that sentence the error's hint, followed by `more` after "; " if that is not NULL. */
int feature_hint(struct error *err, enum feature_kind kind, const char *name, const char *more);
