/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All changes that a recording makes in tracefs, as a list applied in order and undone in reverse.
 * Nothing else in this room changes a setting.
 */
#pragma once

#include "daemon/capture/plan/journal.h"
#include "daemon/capture/tracefs/tracefs.h"

enum plan_kind {
	PLAN_INSTANCE, /* create an instance; undone by removing it */
	PLAN_WRITE,    /* write within our own instance; ends with the instance */
	/*
	 * Write a setting that outlives us. The old value of the top level's file of that name is
	 * kept and restored. Where .instance is set, the file written is the instance's, but the
	 * setting is global: some settings of an instance affect everybody.
	 */
	PLAN_SET,
	PLAN_ADD, /* add a line to a top-level file; .old is the line that removes it */
	/*
	 * Add a trigger to an event of our own instance. A histogram with variables holds its
	 * instance, which can't be removed before the trigger.
	 */
	PLAN_TRIGGER,
};

struct plan_step {
	enum plan_kind kind;
	bool optional; /* a refusal is stored in .refused, and the plan continues */
	bool append;   /* PLAN_WRITE: keep the file's content */
	bool done;
	bool outdated; /* a later step writes another value to the same file */
	bool joined;   /* no slice ends between it and the next step */
	int refused;   /* negative errno */
	int stuck;     /* negative errno of an undo that failed */
	size_t by; /* number, from 1, of a step that makes this one unnecessary if done; 0: none */
	char *instance; /* NULL: the top level */
	char *file;
	char *value; /* PLAN_SET: NULL writes nothing, only puts back */
	/*
	 * PLAN_SET: value to restore; NULL: plan_apply reads it. PLAN_WRITE: value to write before
	 * the instance is removed, if its removal would take long; NULL: none.
	 */
	char *old;
	/*
	 * Whether nobody else uses what it sets, right before the step; NULL: not asked. Another
	 * plan may have been applied since the request was checked.
	 */
	int (*check)(const struct tracefs *fs, const char *file, struct error *err);
	const void *tag; /* the caller's */
	/*
	 * PLAN_INSTANCE: descriptor + 1 of a file in it that is kept open; 0: none. It stops
	 * others from removing the instance: a process in another pid namespace would take its
	 * creator for dead.
	 */
	int hold;
};

struct plan {
	struct plan_step *steps; /* owned */
	size_t count, cap;
	size_t tried; /* number of steps that plan_apply has tried */
	bool failed;  /* out of memory while planning; plan_apply reports it */
};

void plan_deinit(struct plan *p);
/*
 * Steps that an earlier plan_apply did and that still stand are not repeated: no step is added,
 * and plan_write and plan_put return the earlier one. (Writing a clock or size again makes the
 * kernel wait for all CPUs, even if the value is the same.)
 */
void plan_instance(struct plan *p, const char *instance);
/* Returns the step for refinement, valid until the next one is added; NULL: out of memory. */
struct plan_step *plan_write(struct plan *p, const char *instance, const char *file,
			     const char *value);
/* instance as in PLAN_SET; old NULL: read it from the file before writing. */
struct plan_step *plan_set(struct plan *p, const char *instance, const char *file,
			   const char *value, const char *old);
/* Writes to our own instance, or with instance NULL to the top level, restoring it later. */
struct plan_step *plan_put(struct plan *p, const char *instance, const char *file,
			   const char *value);
void plan_add(struct plan *p, const char *file, const char *line, const char *undo);
/* file: events/SYSTEM/EVENT/trigger. Returns the step, or NULL: out of memory. */
struct plan_step *plan_trigger(struct plan *p, const char *instance, const char *file,
			       const char *trigger);

/*
 * Applies the steps not tried yet. Stops at the first refusal of a step that is not optional, and
 * undoes all steps done.
 */
int plan_apply(struct plan *p, const struct tracefs *fs, struct journal *j, struct error *err);
/*
 * A slice of plan_apply(), which ends with the first step that ends after until_ns
 * (CLOCK_MONOTONIC). 1: there is more. After a refusal the caller undoes the steps done.
 */
int plan_apply_slice(struct plan *p, const struct tracefs *fs, struct journal *j, uint64_t until_ns,
		     struct error *err);
/* Returns 0, or the first error after trying everything. */
int plan_undo(struct plan *p, const struct tracefs *fs);
/* A slice of plan_undo(), which remembers errors. True: there is more. */
bool plan_undo_slice(struct plan *p, const struct tracefs *fs, uint64_t until_ns);
/*
 * Undoes the plan and drops the journal, or keeps the journal if something could not be undone.
 * Frees both.
 */
void plan_end(struct plan *p, const struct tracefs *fs, struct journal *j);

/* In explain.c. Explains why the kernel refused a step, with its error_log if that is about it. */
int plan_explain(const struct plan_step *s, const struct tracefs *fs, int code, struct error *err);
/*
 * Appends a hint on a filter with a field that the event lacks: names near to it, and all fields.
 * Appends nothing if the format lists no field.
 */
void plan_put_fields(const char *format, const char *filter, struct buf *out);
