/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All that a recording changes in tracefs, as a list that is applied in order
 * and undone in reverse. Nothing else in this room changes a setting.
 */
#pragma once

#include "daemon/capture/plan/journal.h"
#include "daemon/capture/tracefs/tracefs.h"

enum plan_kind {
	PLAN_INSTANCE, /* make an instance; undone by removing it */
	PLAN_WRITE,    /* write within our own instance; ends with it */
	/*
	 * Write where it outlives us. The old value of the top level's file of that
	 * name is kept and put back. That file is another than the one written where
	 * .instance is set: some settings of an instance are, in truth, everybody's.
	 */
	PLAN_SET,
	PLAN_ADD, /* add a line to a top-level file; .old is the line that takes it away */
};

struct plan_step {
	enum plan_kind kind;
	bool optional; /* a refusal is kept in .refused, and the plan goes on */
	bool append;   /* PLAN_WRITE: what the file holds stays */
	bool done;
	bool outdated;	/* a later step writes something else there */
	int refused;	/* negative errno */
	size_t by;	/* if that step, counted from 1, was done, so is this one; 0: none */
	char *instance; /* NULL: the top level */
	char *file;
	char *value;	 /* PLAN_SET: NULL writes nothing, only puts back */
	char *old;	 /* PLAN_SET: as it has to be written; read if the plan leaves it out */
	const void *tag; /* the caller's */
	/*
	 * PLAN_INSTANCE: a file of it that is kept open, + 1: nobody else can remove it, who takes
	 * its maker, in a pid namespace of its own, for dead. 0: none.
	 */
	int hold;
};

struct plan {
	struct plan_step *steps; /* owned */
	size_t count, cap;
	size_t tried; /* of them, by the last plan_apply */
	bool failed;  /* out of memory while it was made; plan_apply says so */
};

void plan_deinit(struct plan *p);
/*
 * What an earlier plan_apply made or wrote and still stands is not done again: no step is added,
 * and plan_write and plan_put return the one that did it. (A clock, or a size, written anew makes
 * the kernel wait for all CPUs, whatever it was before.)
 */
void plan_instance(struct plan *p, const char *instance);
/* Returns the step, to be refined, valid until the next one is added; NULL: out of memory. */
struct plan_step *plan_write(struct plan *p, const char *instance, const char *file,
			     const char *value);
struct plan_step *plan_writef(struct plan *p, const char *instance, const char *file,
			      const char *fmt, ...) _printf_(4, 5);
/* instance as in PLAN_SET; old NULL: what the file says before. */
struct plan_step *plan_set(struct plan *p, const char *instance, const char *file,
			   const char *value, const char *old);
/* Our own instance's, or kept and put back where instance is NULL. */
struct plan_step *plan_put(struct plan *p, const char *instance, const char *file,
			   const char *value);
void plan_add(struct plan *p, const char *file, const char *line, const char *undo);

/*
 * Applies the steps that have not been tried yet. Stops at the first refusal of one that is
 * not optional, and undoes all that were done.
 */
int plan_apply(struct plan *p, const struct tracefs *fs, struct journal *j, struct error *err);
/* Returns 0, or the first error after having tried everything. */
int plan_undo(struct plan *p, const struct tracefs *fs);
/* Its end: undone, and out of the journal unless something could not be. Frees both. */
void plan_take_down(struct plan *p, const struct tracefs *fs, struct journal *j);

/* Why the kernel refused a step, in words, with its error_log where that speaks of it. */
int plan_explain(const struct plan_step *s, const struct tracefs *fs, int code, struct error *err);
