/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The cost of a libtraced mark, with both ends in one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <traced/traced.h>

#include <cmocka.h>

#include "marks_end.h"
#include "parts.h"

#define MARKS 4000 /* fewer than a ring holds */

static size_t run_marks(void *userdata)
{
	(void)userdata;
	start();
	for (int i = 0; i < MARKS; i += 2) {
		TRACED_BEGIN("bench", "plain");
		TRACED_END();
	}
	stop();
	return MARKS;
}

static size_t run_recorded_marks(void *userdata)
{
	struct marks_recording recording;
	uint64_t before = traced_dropped();
	struct marks *m = userdata;

	marks_recording_begin(m, &recording);
	/* The first ones connect. */
	TRACED_BEGIN("bench", "plain");
	TRACED_END();
	run_marks(NULL);
	marks_recording_end(m, &recording);
	assert_int_equal(traced_dropped(), before);
	return MARKS;
}

int main(void)
{
	static const struct marks_limits limits = {
		.producers = 64,
		.producers_per_user = 16,
		.rings_per_user = 64,
		.bytes_per_user = 64U << 20,
	};
	struct marks *m;
	void *state = NULL;

	assert_int_equal(marks_folder_make(&state), 0);
	m = marks_serve(&limits);
	marks_find_daemon();
	measure("marks, nobody records", "mark", run_marks, NULL);
	measure("marks, recorded", "mark", run_recorded_marks, m);
	marks_free(m);
	marks_folder_remove(&state);
	return 0;
}
