/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exports a capture with a lower limit than the one of viewers: export_limited IN OUT FORMAT LIMIT
 * THREADS [MERGED]. Writes the parts as OUT.1, OUT.2 ... and prints their number. A merged file is
 * in CLOCK_BOOTTIME.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/io.h"
#include "formats/formats.h"

static int write_segment(const char *path, unsigned number, int from, uint64_t at, uint64_t end)
{
	_cleanup_free_ char *name = NULL;
	_cleanup_close_ int fd = -EBADF;

	if (asprintf(&name, "%s.%u", path, number) < 0)
		return -ENOMEM;
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	return fd < 0 ? -errno : copy_range(fd, from, at, end - at);
}

static int write_segments(const char *path, int from, const struct export_result *r)
{
	uint64_t at = 0;
	int e = 0;

	for (size_t i = 0; e == 0 && i <= r->segment_count; i++) {
		uint64_t end = i < r->segment_count ? r->segment_ends[i] : r->bytes;

		e = write_segment(path, (unsigned)i + 1, from, at, end);
		at = end;
	}
	printf("%zu\n", r->segment_count + 1);
	return e;
}

int main(int argc, char **argv)
{
	struct export_merge merge = { .name = "merged", .clock = CLOCK_BOOTTIME };
	struct export_options o = { .segments = true, .merges = &merge };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_close_ int in = -EBADF, out = -EBADF, merged = -EBADF;
	int r;

	if (argc < 6 || argc > 7)
		return 2;
	o.format = argv[3];
	o.json_string_max = strtoull(argv[4], NULL, 10);
	o.threads = (unsigned)strtoul(argv[5], NULL, 10);
	in = open(argv[1], O_RDONLY | O_CLOEXEC);
	out = open(".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (argc > 6) {
		merge.fd = merged = open(argv[6], O_RDONLY | O_CLOEXEC);
		o.merge_count = 1;
	}
	r = export_stream(in, out, &o, &result, &err);
	if (r == 0)
		r = write_segments(argv[2], out, &result);
	if (r < 0)
		fprintf(stderr, "export_limited: %s\n", err.message ?: strerror(-r));
	return r < 0;
}
