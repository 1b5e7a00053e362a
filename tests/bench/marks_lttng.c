/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * marks_lttng KIND THREADS: like marks.c, for LTTng-UST. tests/bench/marks builds it if LTTng is
 * there.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "marks_lttng.h"

#include "marks_batches.h"

static void plain(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		lttng_ust_tracepoint(traced_bench, plain);
}

static void args(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		lttng_ust_tracepoint(traced_bench, args, (int)i, i * 0.5, "a short text");
}

static void one(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		lttng_ust_tracepoint(traced_bench, one, (int)i);
}

static const struct way ways[] = {
	{ "lttng", "plain", plain },
	{ "lttng", "args", args },
	{ "lttng", "int", one },
	{ NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	return argc == 3 ? measure(ways, "lttng", argv[1], atoi(argv[2])) : 2;
}
