/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A folder that looks like tracefs, procfs or sysfs: files by their paths, for one test. */
#pragma once

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

struct fake_root {
	char path[64];
};

static inline void fake_root_init(struct fake_root *f)
{
	strcpy(f->path, "/tmp/traced-unit-XXXXXX");
	assert_non_null(mkdtemp(f->path));
}

static int fake_root_remove(const char *path, const struct stat *st _unused_, int type _unused_,
			    struct FTW *ftw _unused_)
{
	return remove(path);
}

static inline void fake_root_deinit(struct fake_root *f)
{
	nftw(f->path, fake_root_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *fake_path(const struct fake_root *f, const char *path)
{
	static char full[2][512];
	static int turn;

	turn = !turn;
	snprintf(full[turn], sizeof(full[turn]), "%s/%s", f->path, path);
	return full[turn];
}

static inline void fake_dir(const struct fake_root *f, const char *path)
{
	char full[1024];

	snprintf(full, sizeof(full), "%s/%s/", f->path, path);
	for (char *p = full + strlen(f->path) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0755);
		*p = '/';
	}
}

static inline void fake_data(const struct fake_root *f, const char *path, const void *data,
			     size_t len)
{
	char dir[256];
	char *slash;
	FILE *file;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash) {
		*slash = '\0';
		fake_dir(f, dir);
	}
	file = fopen(fake_path(f, path), "we");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, len, file), len);
	fclose(file);
}

static inline void fake_file(const struct fake_root *f, const char *path, const char *text)
{
	fake_data(f, path, text, strlen(text));
}

/* The file's text; valid until the next call. */
static inline const char *fake_text(const struct fake_root *f, const char *path)
{
	static char text[8192];
	FILE *file = fopen(fake_path(f, path), "re");
	size_t n;

	if (!file)
		return NULL;
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	fclose(file);
	return text;
}
