/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Steps of old asynchronous slices (S, T, p, F). Trace Viewer draws them below their slice, but
 * trace processor does not know these phases. So each step becomes a slice within its slice, named
 * NAME:STEP as in Trace Viewer: of T up to the next step, of p since the last one.
 */
#pragma once

#include "base/table.h"
#include "marks/mark.h"

struct json_step {
	uint64_t key;	  /* hash of the slice's identity; 0: free slot */
	uint64_t last_ts; /* begin, or last step */
	char *open;	  /* owned; name of the step that lasts; NULL: none */
	struct share_owner owner;
};
DECLARE_TABLE(json_step_slots, struct json_step);

struct json_steps {
	struct json_step_slots open;
	struct shares shares;
	struct buf name; /* of the marks returned last */
	char *closed;	 /* the same; owned */
};
void json_steps_deinit(struct json_steps *s);

/*
 * Fills ret with the marks to write instead of mark, which is of an old phase. Returns their
 * number, 1 or 2, or -ENOMEM. They are valid until the next call.
 */
int json_steps_take(struct json_steps *s, const struct mark *mark, struct mark ret[static 2]);
