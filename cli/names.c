/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "names.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

unsigned names_lack;

int name_take_apart(const char *path, const struct export_format *format, char **ret_stem,
		    char **ret_ending)
{
	const char *base = strrchr(path, '/'), *dot;
	size_t len = strlen(path), ending = strlen(format->extension);

	base = base ? base + 1 : path;
	dot = path + len;
	if (len > ending && !strcasecmp(path + len - ending, format->extension))
		dot = path + len - ending;
	else if (strrchr(base, '.') && strrchr(base, '.') != base)
		dot = strrchr(base, '.');
	*ret_stem = strndup(path, (size_t)(dot - path));
	*ret_ending = strdup(dot);
	return *ret_stem && *ret_ending ? 0 : -ENOMEM;
}

bool name_is_callers(uid_t owner)
{
	const char *sudo = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
	char text[16];

	snprintf(text, sizeof(text), "%u", owner);
	return owner == geteuid() || (sudo && strcmp(sudo, text) == 0);
}

/* The kernel's limit of links in a path. */
#define LINKS_MAX 40

/* Target of the link, relative to where path is: owned. NULL: no link, or out of memory. */
static char *follow_link(const char *path)
{
	const char *slash = strrchr(path, '/');
	char link[PATH_MAX], *next;
	ssize_t len = readlink(path, link, sizeof(link) - 1);

	if (len < 0)
		return NULL;
	link[len] = '\0';
	if (asprintf(&next, "%.*s%s", *link == '/' || !slash ? 0 : (int)(slash + 1 - path), path,
		     link) < 0)
		return NULL;
	return next;
}

char *name_target(const char *path)
{
	char *target = strdup(path);

	for (int n = 0; target && n < LINKS_MAX; n++) {
		char *real = realpath(target, NULL), *next;
		struct stat st;

		if (real) {
			free(target);
			return real;
		}
		if (lstat(target, &st) < 0 || !S_ISLNK(st.st_mode) || !name_is_callers(st.st_uid))
			break;
		next = follow_link(target);
		free(target);
		target = next;
	}
	return target;
}

/* Number N in /proc/PID/fd/N, whose links lead to open files rather than names; or -1. */
static int number_in_proc(const char *path)
{
	_cleanup_free_ char *dir = NULL, *real = NULL, *own = NULL;
	const char *base = strrchr(path, '/');
	size_t digits = base ? strspn(base + 1, "0123456789") : 0;

	if (digits == 0 || digits > 9 || base[1 + digits])
		return -1;
	dir = strndup(path, (size_t)(base - path));
	real = dir ? realpath(dir, NULL) : NULL;
	own = realpath("/proc/self/fd", NULL);
	return real && own && !strcmp(real, own) ? atoi(base + 1) : -1;
}

int name_descriptor(const char *path)
{
	_cleanup_free_ char *at = strdup(path);
	int fd = -1;

	for (int n = 0; at && n < LINKS_MAX; n++) {
		char *next;

		fd = number_in_proc(at);
		if (fd >= 0)
			break;
		next = follow_link(at);
		free(at);
		at = next;
	}
	if (fd < 0)
		return -ENOENT;
	/*
	 * Our own descriptors are close-on-exec, except /dev/null in place of a missing standard
	 * descriptor. As standard input, that one would be writable.
	 */
	if (fd == STDIN_FILENO || fcntl(fd, F_GETFD) != 0 ||
	    (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	return fd;
}

int name_hidden(const char *base, char **ret)
{
	uint64_t noise;

	if (getrandom(&noise, sizeof(noise), 0) != sizeof(noise))
		return -errno;
	if (asprintf(ret, ".%.*s.%08x", NAME_MAX - 16, base, (unsigned)noise) < 0)
		return -ENOMEM;
	return 0;
}

static int by_rename(int dir_fd, const char *from, const char *to)
{
	if (names_lack & NAMES_LACK_NOREPLACE)
		return -EINVAL;
	return renameat2(dir_fd, from, dir_fd, to, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

static int by_link(int dir_fd, const char *from, const char *to)
{
	if (names_lack & NAMES_LACK_LINKS)
		return -EPERM;
	if (linkat(dir_fd, from, dir_fd, to, 0) < 0)
		return -errno;
	unlinkat(dir_fd, from, 0);
	return 0;
}

/* Creates the name exclusively first, so that no other file is replaced. */
static int by_claim(int dir_fd, const char *from, const char *to)
{
	int fd = openat(dir_fd, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	int r = fd < 0 ? -errno : 0;

	close_fd(fd);
	if (r == 0 && renameat(dir_fd, from, dir_fd, to) < 0) {
		r = -errno;
		unlinkat(dir_fd, to, 0);
	}
	return r;
}

/* Errors of filesystems that lack such a call. */
static bool is_lacking(int r)
{
	return r == -EINVAL || r == -ENOSYS || r == -EOPNOTSUPP || r == -EPERM || r == -EMLINK;
}

int name_rename_fresh(int dir_fd, const char *from, const char *to)
{
	int r = by_rename(dir_fd, from, to);

	if (is_lacking(r))
		r = by_link(dir_fd, from, to);
	if (is_lacking(r))
		r = by_claim(dir_fd, from, to);
	return r;
}
