/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Slices as atrace writes them into trace_marker: "B|PID|NAME", "E" or "E|PID", and across threads
 * "S|PID|NAME|COOKIE" and "F|PID|NAME|COOKIE".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "marks/value.h"

enum slice_kind { SLICE_BEGIN, SLICE_END, SLICE_ASYNC_BEGIN, SLICE_ASYNC_END };

struct slice_text {
	enum slice_kind kind;
	int32_t pid;
	struct text name, id; /* borrowed; name is empty in SLICE_END, id unless it is async */
};

/* False: the text is no slice. */
bool slice_text_parse(struct text text, struct slice_text *ret);
