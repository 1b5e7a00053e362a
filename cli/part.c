/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "part.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "export/mend.h"
#include "names.h"

#define NAMES_MAX 10000
/* A younger empty file may be about to be locked by its creator. */
#define NEW_NS (10 * NSEC_PER_SEC)

static int part_name(const char *base, char **ret)
{
	return asprintf(ret, "%s" PART, base) < 0 ? -ENOMEM : 0;
}

int part_open(int dir_fd, const char *base, char **ret_name)
{
	_cleanup_free_ char *name = NULL;
	int fd, r = part_name(base, &name);

	if (r < 0)
		return r;
	fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return -errno;
	/* Without lock support, nobody takes it for abandoned. */
	flock(fd, LOCK_EX);
	*ret_name = TAKE_PTR(name);
	return fd;
}

static bool is_new(const struct stat *st)
{
	uint64_t now = now_ns(CLOCK_REALTIME), then = (uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC;

	return now < then + NEW_NS;
}

/* Needed for formats whose mend() does not check the file's kind. */
static bool begins_as(int fd, const struct export_format *format)
{
	const char *head = format->begins ?: "";
	char found[16];
	ssize_t n = pread_full(fd, found, MIN(strlen(head), sizeof(found)), 0);

	return n >= 0 && memcmp(found, head, (size_t)n) == 0;
}

int part_take(int dir_fd, const char *base, const struct export_format *format)
{
	_cleanup_free_ char *name = NULL;
	_cleanup_close_ int fd = -EBADF;
	struct stat st;
	int r = part_name(base, &name);

	if (r < 0)
		return r;
	fd = openat(dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	/* Other programs use this suffix, too: leave their files alone. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_nlink != 1)
		return -ENOENT;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || (!st.st_size && is_new(&st)))
		return -EBUSY;
	if (!begins_as(fd, format))
		return -ENOENT;
	r = mend_file(format, fd, NULL);
	if (r > 0)
		return TAKE_FD(fd);
	/* Not one whole packet or line. */
	if (r == 0)
		unlinkat(dir_fd, name, 0);
	return r < 0 ? r : -ENOENT;
}

static int name_it(int dir_fd, const char *dir, const char *base,
		   const struct export_format *format, struct buf *ret)
{
	_cleanup_free_ char *stem = NULL, *ending = NULL, *part = NULL;
	int r = name_take_apart(base, format, &stem, &ending);

	if (r == 0)
		r = part_name(base, &part);
	if (r < 0)
		return r;
	r = -EEXIST;
	for (unsigned n = 1; r == -EEXIST && n < NAMES_MAX; n++) {
		_cleanup_buf_ struct buf name = BUF_INIT;

		buf_printf(&name, "%s.partial", stem);
		if (n > 1)
			buf_printf(&name, ".%u", n);
		buf_puts(&name, ending);
		r = buf_string(&name) ? name_rename_fresh(dir_fd, part, name.data) : -ENOMEM;
		if (r == 0)
			buf_printf(ret, "%s%s", dir, name.data);
	}
	return r;
}

int part_recover(const char *path, const struct export_format *format, struct buf *ret_name)
{
	_cleanup_free_ char *target = name_target(path), *dir = NULL;
	_cleanup_close_ int dir_fd = -EBADF, fd = -EBADF;
	const char *slash, *base;
	int r;

	if (!target)
		return -ENOMEM;
	slash = strrchr(target, '/');
	base = slash ? slash + 1 : target;
	dir = strndup(target, (size_t)(base - target));
	if (!dir)
		return -ENOMEM;
	dir_fd = open(*dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return 0;
	fd = part_take(dir_fd, base, format);
	if (fd < 0)
		return 0;
	r = name_it(dir_fd, dir, base, format, ret_name);
	return r < 0 ? r : 1;
}
