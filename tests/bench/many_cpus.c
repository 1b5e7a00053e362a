/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * many_cpus CPUS MILLIONS FILE: a capture stream in which all CPUs write in turns, each its next
 * event 100 ns after the CPU before it had one. No merge has more to do for an event.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "make_stream.h"

#define SUBBUF 4096
#define PAGES 16
#define STEP_NS 100
/* Of event_number(): 16 bytes, and the head of its record. */
#define EVENTS_A_PAGE ((SUBBUF - 16) / 20)

static void put_page(struct maker *m, unsigned cpu, unsigned cpus, uint64_t first, uint64_t end)
{
	uint64_t start = UINT64_C(1000000000000);

	for (uint64_t i = first; i < end; i++) {
		uint64_t ts = start + (i * cpus + cpu) * STEP_NS;

		if (i == first)
			page_begin(m, ts);
		event_number(m, ts, (int32_t)(1 + (cpu * 7 + i / 50) % 4000), (uint32_t)i);
	}
	page_end(m, 0);
}

int main(int argc, char **argv)
{
	unsigned cpus = argc == 4 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	uint64_t each = cpus ? (uint64_t)(strtod(argv[2], NULL) * 1e6) / cpus : 0;
	struct maker m;
	int fd = each ? open(argv[3], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;

	if (fd < 0) {
		fprintf(stderr, "Usage: %s CPUS MILLIONS FILE\n", argv[0]);
		return 2;
	}
	maker_init_fd(&m, fd, 8, false, SUBBUF);
	maker_head(&m);
	for (uint64_t at = 0; at < each; at += PAGES * EVENTS_A_PAGE) {
		for (unsigned cpu = 0; cpu < cpus; cpu++) {
			for (uint64_t p = at; p < MIN(each, at + PAGES * EVENTS_A_PAGE);
			     p += EVENTS_A_PAGE)
				put_page(&m, cpu, cpus, p, MIN(each, p + EVENTS_A_PAGE));
			maker_flush(&m, cpu, BUFFER_MAIN, 0);
		}
	}
	maker_end(&m);
	maker_deinit(&m);
	return 0;
}
