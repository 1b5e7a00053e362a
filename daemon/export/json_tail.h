/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What follows the kernel's text in the JSON: names, clocks, the account of events. */
#pragma once

#include "export/portable.h"
#include "export/sink.h"

/* Appends all members after "systemTraceEvents", each with a comma before it. 0 or -errno. */
int json_tail(struct output *out, const struct trace_info *info, const struct export_result *result,
	      const struct clock_sync *sync);
