/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "input.h"

#include <fcntl.h>

#include "util/io.h"

int input_keep(int in, struct error *err)
{
	const char *dir = getenv("TMPDIR") ?: "/var/tmp";
	_cleanup_close_ int fd = -EBADF;
	_cleanup_free_ char *piece = NULL;
	const size_t size = 256U << 10;
	ssize_t n;
	int r;

	fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (fd < 0) {
		error_errno(err, -errno, "a temporary file in %s", dir);
		return error_hint(err, "TMPDIR names another place; a file as input needs none");
	}
	piece = malloc(size);
	if (!piece)
		return error_errno(err, -ENOMEM, "input");
	while ((n = read_full(in, piece, size)) > 0) {
		r = write_full(fd, piece, (size_t)n);
		if (r < 0) {
			error_errno(err, r, "a temporary file in %s", dir);
			return error_hint(err, "TMPDIR names another place");
		}
	}
	if (n < 0)
		return error_errno(err, (int)n, "input");
	if (lseek(fd, 0, SEEK_SET) < 0)
		return error_errno(err, -errno, "a temporary file in %s", dir);
	return TAKE_FD(fd);
}
