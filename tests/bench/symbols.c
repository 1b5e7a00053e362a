/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* symbols FILE: the time to load a text like /proc/kallsyms, and the memory that it keeps. */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/io.h"
#include "print/symbols.h"

#define RUNS 11

static size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	size_t kept = 0, count = 0;
	double ms[RUNS];

	if (argc != 2 || read_file_at(AT_FDCWD, argv[1], 64U << 20, &text) < 0) {
		fprintf(stderr, "usage: %s FILE\n", argv[0]);
		return 2;
	}
	for (int i = 0; i < RUNS; i++) {
		_cleanup_buf_ struct buf taken = BUF_INIT;
		struct symbols *s = NULL;
		size_t before = heap();
		double begin;

		buf_append(&taken, text.data, text.len);
		begin = now_ms();
		if (symbols_take(&s, &taken) < 0)
			return 1;
		ms[i] = now_ms() - begin;
		kept = heap() - before;
		count = symbols_count(s);
		symbols_free(s);
	}
	qsort(ms, RUNS, sizeof(ms[0]), by_value);
	printf("%zu symbols of %zu bytes: %.1f ms (median of %d), %.2f MiB\n", count, text.len,
	       ms[RUNS / 2], RUNS, (double)kept / (1 << 20));
	return 0;
}
