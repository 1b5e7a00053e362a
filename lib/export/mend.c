/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/mend.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

int mend_cut(int fd, off_t end)
{
	if (ftruncate(fd, end) < 0)
		return -errno;
	return end > 0;
}

int mend_close(int fd, off_t at, const char *close)
{
	size_t len = strlen(close);
	ssize_t n = pwrite(fd, close, len, at);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? mend_cut(fd, at + (off_t)len) : -ENOSPC;
}

off_t mend_last_line(int fd, off_t size)
{
	_cleanup_free_ char *piece = malloc(MEND_PIECE);

	if (!piece)
		return -ENOMEM;
	while (size > 0) {
		off_t from = MAX(size - (off_t)MEND_PIECE, (off_t)0);
		ssize_t n = pread_full(fd, piece, (size_t)(size - from), from);
		const char *end;

		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		end = memrchr(piece, '\n', (size_t)n);
		if (end)
			return from + (end - piece) + 1;
		size = from;
	}
	return 0;
}

bool mend_is_full(int r)
{
	return r == -ENOSPC || r == -EDQUOT || r == -EFBIG;
}

int mend_file(const struct export_format *format, int fd, struct error *err)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "cannot mend the partial file");
	r = format->mend ? format->mend(fd, st.st_size) : st.st_size > 0;
	return r < 0 ? error_errno(err, r, "cannot mend the partial file") : r;
}
