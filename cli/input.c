/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "input.h"

#include <fcntl.h>

#include "import/import.h"
#include "util/io.h"

static const char *temp_place(void)
{
	return getenv("TMPDIR") ?: "/var/tmp";
}

static int temp_file(struct error *err)
{
	const char *dir = temp_place();
	int fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	error_errno(err, -errno, "a temporary file in %s", dir);
	return error_hint(err, "TMPDIR names another place");
}

int input_keep(int in, struct error *err)
{
	_cleanup_close_ int fd = temp_file(err);
	const char *dir = temp_place();
	_cleanup_free_ char *piece = NULL;
	const size_t size = 256U << 10;
	ssize_t n;
	int r;

	if (fd < 0)
		return fd;
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

int input_import(int *in, const char *path, const char *instance, struct error *err)
{
	const struct import_options options = { .instance = instance };
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (!import_wanted(*in)) {
		if (!instance)
			return 0;
		return error_set(err, -EINVAL,
				 "--instance chooses a buffer of a trace.dat, and %s is none",
				 path);
	}
	fd = temp_file(err);
	if (fd < 0)
		return fd;
	r = import_stream(*in, fd, &options, err);
	if (r == -ENOSPC || r == -EDQUOT)
		error_hint(err, "TMPDIR names another place than %s", temp_place());
	if (r < 0)
		return error_prefix(err, "%s", path);
	close_fd(*in);
	*in = TAKE_FD(fd);
	return 0;
}
