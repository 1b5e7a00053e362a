/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All that a recording changes in tracefs, as a list that is applied in order
 * and undone in reverse. Nothing else in this room changes a setting.
 */
#pragma once

#include "capture/journal.h"
#include "capture/tracefs.h"

enum plan_kind {
	PLAN_INSTANCE, /* make an instance; undone by removing it */
	PLAN_WRITE,    /* write within our own instance; ends with it */
	PLAN_SET,      /* write elsewhere; the old value is kept and put back */
};

struct plan_step {
	enum plan_kind kind;
	bool optional; /* a refusal is kept in .refused, and the plan goes on */
	bool done;
	int refused;	/* negative errno */
	size_t by;	/* if that step, counted from 1, was done, so is this one; 0: none */
	char *instance; /* NULL: the top level */
	char *file;
	char *value;
	char *old;	 /* PLAN_SET */
	const void *tag; /* the caller's */
};

struct plan {
	struct plan_step *steps; /* owned */
	size_t count, cap;
	bool failed; /* out of memory while it was made; plan_apply says so */
};

void plan_deinit(struct plan *p);
void plan_instance(struct plan *p, const char *instance);
/* Returns the step, to be refined, valid until the next one is added; NULL: out of memory. */
struct plan_step *plan_write(struct plan *p, const char *instance, const char *file,
			     const char *value);
struct plan_step *plan_writef(struct plan *p, const char *instance, const char *file,
			      const char *fmt, ...) _printf_(4, 5);
void plan_set(struct plan *p, const char *file, const char *value);

/* Stops at the first refusal of a step that is not optional, and undoes what was done. */
int plan_apply(struct plan *p, const struct tracefs *fs, struct journal *j, struct error *err);
/* Returns 0, or the first error after having tried everything. */
int plan_undo(struct plan *p, const struct tracefs *fs);

/* Why the kernel refused a step, in words, with its error_log where that speaks of it. */
int plan_explain(const struct plan_step *s, const struct tracefs *fs, int code, struct error *err);
