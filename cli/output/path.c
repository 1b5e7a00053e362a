/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "output/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "output/walk.h"

enum path_kind path_kind(const char *path)
{
	struct stat st;

	if (!strcmp(path, "-") || path_descriptor(path) != -ENOENT)
		return PATH_IN_PLACE;
	if (stat(path, &st) < 0 || S_ISREG(st.st_mode))
		return PATH_FILE;
	return S_ISDIR(st.st_mode) ? PATH_DIRECTORY : PATH_IN_PLACE;
}

int path_split(const char *path, char **ret_dir, char **ret_base)
{
	const char *slash = strrchr(path, '/');

	*ret_dir = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	*ret_base = strdup(slash ? slash + 1 : path);
	return *ret_dir && *ret_base ? 0 : -ENOMEM;
}

int path_split_ending(const char *path, const struct export_format *format, char **ret_stem,
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

bool path_owner_is_caller(uid_t owner)
{
	const char *sudo = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
	char text[16];

	snprintf(text, sizeof(text), "%u", owner);
	return owner == geteuid() || (sudo && strcmp(sudo, text) == 0);
}

/* The kernel's limit of links in a path. */
#define LINKS_MAX 40

/* Target of the link, relative to where path is: owned. NULL: no link, or out of memory. */
static char *path_follow_link(const char *path)
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

char *path_follow_links(const char *path)
{
	char *at = strdup(path), *next;

	for (int n = 0; at && n < LINKS_MAX && (next = path_follow_link(at)); n++) {
		free(at);
		at = next;
	}
	return at;
}

/* Number N in /proc/PID/fd/N, whose links lead to open files rather than names; or -1. */
static int path_proc_number(const char *path)
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

static int allowed_fd = -EBADF;

void path_descriptor_allow(int fd)
{
	allowed_fd = fd;
}

int path_descriptor(const char *path)
{
	_cleanup_free_ char *at = strdup(path);
	int fd = -1;

	for (int n = 0; at && n < LINKS_MAX; n++) {
		char *next;

		fd = path_proc_number(at);
		if (fd >= 0)
			break;
		next = path_follow_link(at);
		free(at);
		at = next;
	}
	if (fd < 0)
		return -ENOENT;
	/*
	 * Our own descriptors are close-on-exec, except /dev/null in place of a missing standard
	 * descriptor. As standard input, that one would be writable.
	 */
	if (fd != allowed_fd && (fd == STDIN_FILENO || fcntl(fd, F_GETFD) != 0 ||
				 (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY))
		return -EBADF;
	return fd;
}

int path_refuse_directory(const char *path, struct error *err)
{
	error_set(err, -EISDIR, "%s is a directory", path);
	return error_hint(err, "name a file in it: -o %s%strace.json", path,
			  path[strlen(path) - 1] == '/' ? "" : "/");
}

/* 1: empty; 0; or -errno. */
static int path_is_empty_directory(const char *path)
{
	const struct dirent *entry;
	DIR *d = opendir(path);
	bool empty = true;

	if (!d)
		return -errno;
	while (empty && (entry = readdir(d)))
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	closedir(d);
	return empty;
}

/* Refuses to replace a file or a directory with content. */
int path_check_directory(const char *path, struct error *err)
{
	struct stat st;
	int r;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : error_errno(err, -errno, "%s", path);
	if (!S_ISDIR(st.st_mode)) {
		r = error_set(err, -EEXIST, "%s exists and is not a directory", path);
	} else {
		r = place_check_owner(path, err);
		if (r < 0)
			return r;
		r = path_is_empty_directory(path);
		if (r > 0)
			return 0;
		r = r < 0 ? error_errno(err, r, "cannot read the directory %s", path)
			  : error_set(err, -EEXIST, "%s exists and is not empty", path);
	}
	error_hint(err, "remove it, or " OTHER_OUTPUT);
	return r;
}
