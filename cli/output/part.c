/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "output/part.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "export/mend.h"
#include "output/name.h"
#include "output/path.h"
#include "output/walk.h"

#define NAMES_MAX 10000
/* A younger empty file may be about to be locked by its creator. */
#define NEW_NS (10 * NSEC_PER_SEC)

static bool part_is_new(const struct stat *st)
{
	uint64_t now = now_ns(CLOCK_REALTIME), then = (uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC;

	return now < then + NEW_NS;
}

/* Needed for formats whose mend() does not check the file's kind. */
static bool part_begins_as(int fd, const struct export_format *format)
{
	const char *head = format->begins ?: "";
	char found[16];
	ssize_t n = pread_full(fd, found, MIN(strlen(head), sizeof(found)), 0);

	return n >= 0 && memcmp(found, head, (size_t)n) == 0;
}

int part_take(int dir_fd, const char *part, const struct export_format *format, const char *path,
	      struct sequels *ret)
{
	_cleanup_close_ int fd =
		openat(dir_fd, part, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0)
		return -errno;
	/* Other programs use this suffix, too: leave their files alone. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_nlink != 1)
		return -ENOENT;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || (!st.st_size && part_is_new(&st)))
		return -EBUSY;
	if (!part_begins_as(fd, format))
		return -ENOENT;
	r = path ? sequels_mend(ret, fd, path, format, NULL) : mend_file(format, fd, NULL);
	if (r > 0)
		return TAKE_FD(fd);
	/* Not one whole packet or line. */
	if (r == 0)
		unlinkat(dir_fd, part, 0);
	return r < 0 ? r : -ENOENT;
}

/* Renames base's part. where: the path of dir_fd, as the user knows it. */
static int part_rename(int dir_fd, const char *part, const char *where, const char *base,
		       const struct export_format *format, struct buf *ret)
{
	_cleanup_free_ char *stem = NULL, *ending = NULL;
	int r = path_split_ending(base, format, &stem, &ending);

	if (r < 0)
		return r;
	r = -EEXIST;
	for (unsigned n = 1; r == -EEXIST && n < NAMES_MAX; n++) {
		_cleanup_buf_ struct buf name = BUF_INIT;

		buf_printf(&name, "%s.partial", stem);
		if (n > 1)
			buf_printf(&name, ".%u", n);
		buf_puts(&name, ending);
		r = buf_string(&name) ? output_rename_fresh(dir_fd, part, name.data) : -ENOMEM;
		if (r == 0)
			buf_printf(ret, "%s%s", where, name.data);
	}
	return r;
}

int part_recover(const char *path, const struct export_format *format, struct buf *ret_name)
{
	_cleanup_place_ struct place place = PLACE_INIT;
	_cleanup_(sequels_deinit) struct sequels sequels = { 0 };
	_cleanup_free_ char *stem = NULL, *ending = NULL, *part = NULL, *partial = NULL;
	_cleanup_close_ int fd = -EBADF;
	int r = place_find(&place, path, true, NULL);

	/* Creating the output reports the reason. */
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (asprintf(&part, "%s" PART, place.base) < 0 ||
	    path_split_ending(place.path, format, &stem, &ending) < 0 ||
	    asprintf(&partial, "%s.partial%s", stem, ending) < 0)
		return -ENOMEM;
	fd = part_take(place.dir_fd, part, format, partial, &sequels);
	if (fd < 0)
		return 0;
	place.path[strlen(place.path) - strlen(place.base)] = '\0';
	r = part_rename(place.dir_fd, part, place.path, place.base, format, ret_name);
	if (r == 0 && sequels.count)
		buf_puts(ret_name, " and ");
	sequels_put(&sequels, ret_name);
	return r < 0 ? r : 1;
}
