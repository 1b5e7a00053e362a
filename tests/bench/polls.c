/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * polls: the cost of one reading of each source of --poll on this machine: bytes in the stream, and
 * CPU time of this thread, the median of many readings. Needs no root.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/io.h"
#include "daemon/capture/polls/poll_files.h"

#define READINGS 300

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int main(void)
{
	const struct poll_where where = { .proc = "/proc", .sys = "/sys" };

	printf("| source | bytes of one reading in the stream | CPU time of one reading |\n"
	       "|---|---|---|\n");
	for (unsigned s = 1; s < POLL_SOURCES; s++) {
		_cleanup_(poll_files_close) struct poll_files f = { 0 };
		_cleanup_buf_ struct buf text = BUF_INIT, out = BUF_INIT;
		uint64_t spent[READINGS];

		if (poll_files_open(&f, s, &where, NULL) < 0) {
			printf("| `%s` | | not on this machine |\n", poll_source_name(s));
			continue;
		}
		for (int i = 0; i < READINGS; i++) {
			uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
			int r;

			buf_clear(&out);
			while ((r = poll_files_read(&f, &text, &out)) > 0)
				;
			if (r < 0)
				return 1;
			spent[i] = now_ns(CLOCK_THREAD_CPUTIME_ID) - began;
		}
		qsort(spent, READINGS, sizeof(*spent), compare);
		printf("| `%s` | %zu | %.0f us |\n", poll_source_name(s), out.len,
		       (double)spent[READINGS / 2] / 1000);
	}
	return 0;
}
