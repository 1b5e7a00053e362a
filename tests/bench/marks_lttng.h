/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* LTTng-UST's events, with the same numbers of fields as ours. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER traced_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "marks_lttng.h"

#if !defined(MARKS_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define MARKS_LTTNG_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(traced_bench, plain, LTTNG_UST_TP_ARGS(void), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(traced_bench, one, LTTNG_UST_TP_ARGS(int, i),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, i, i)))
LTTNG_UST_TRACEPOINT_EVENT(traced_bench, args,
			   LTTNG_UST_TP_ARGS(int, i, double, d, const char *, s),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, i, i)
						       lttng_ust_field_float(double, d, d)
							       lttng_ust_field_string(s, s)))

#endif

#include <lttng/tracepoint-event.h>
