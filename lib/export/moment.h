/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A time in a recording, as people write it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum moment_kind {
	MOMENT_NONE,
	MOMENT_AT,	    /* a time of the trace clock, as the text shows it */
	MOMENT_AFTER_BEGIN, /* since the first event */
	MOMENT_BEFORE_END,  /* before the last event */
	MOMENT_MARK,	    /* the first mark of that name */
};

struct moment {
	enum moment_kind kind;
	/*
	 * With at most six digits after the point, MOMENT_AT is the first ns of which the text
	 * shows that microsecond, as it rounds.
	 */
	uint64_t ns;
	uint64_t count;	  /* MOMENT_AT without a fraction: for clocks that count no time */
	bool is_fraction; /* it has a fraction: no such clock has these times */
	const char *mark; /* MOMENT_MARK: borrowed */
};

/*
 * "12.345678901" (seconds of the trace clock), "+1.5s", "-500ms", or a mark's name, after "mark:"
 * where it begins like a time. Returns 0 or -EINVAL; ret->mark points into text.
 */
int moment_parse(const char *text, struct moment *ret, struct error *err);
