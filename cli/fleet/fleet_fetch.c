/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl fleet fetch`: copies an order's results from a store. A file gets its name when its
 * content has that hash, so what has a name is whole, and another run goes on with the rest.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "curl.h"
#include "fleet.h"
#include "fleet_store.h"
#include "input.h"

/* A recording has at most so many bytes. */
#define FILE_MAX (UINT64_C(1) << 30)

struct fetching {
	struct fleet_store store;
	struct listing names;
	int folder;
	size_t present, fetched, missing, refused;
};

static void fetching_deinit(struct fetching *f)
{
	fleet_store_deinit(&f->store);
	listing_deinit(&f->names);
	close_fd(f->folder);
}

static int fetching_open(struct fetching *f, const char *folder, struct error *err)
{
	if (mkdir(folder, 0777) < 0 && errno != EEXIST)
		return error_errno(err, -errno, "%s", folder);
	f->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return f->folder < 0 ? error_errno(err, -errno, "%s", folder) : 0;
}

/* Leaves out what is there, and recordings unless they are wanted. */
static void fetching_choose(struct fetching *f)
{
	const bool captures = f->store.o->capture;
	size_t kept = 0;

	for (size_t i = 0; i < f->names.count; i++) {
		char *name = f->names.names[i];
		const char *dot = strrchr(name, '.');
		bool is_there = faccessat(f->folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;

		if (is_there || (!captures && !strcmp(dot, ".traced"))) {
			f->present += is_there;
			free(name);
		} else {
			f->names.names[kept++] = name;
		}
	}
	f->names.count = kept;
}

static int fetching_get(struct fetching *f, struct error *err)
{
	_cleanup_close_ int fd = input_create_temp();
	_cleanup_buf_ struct buf list = BUF_INIT;
	const struct fleet_store *s = &f->store;
	char path[32];
	int r = fd;

	for (size_t i = 0; i < f->names.count; i++) {
		buf_puts(&list, "url = \"");
		fleet_store_put_url(s, f->names.names[i], &list);
		buf_printf(&list, "\"\noutput = \"%s.part\"\n", f->names.names[i]);
	}
	if (r >= 0)
		r = buf_error(&list) ?: write_full(fd, list.data, list.len);
	if (r < 0)
		return error_errno(err, r, "the list for curl");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->folder);
	r = f->names.count ? curl_get_all(s->o->curl, fd, FILE_MAX, path, err) : 0;
	return r < 0 ? r : 0;
}

/* Gives a file its name, or removes it. */
static void fetching_keep(struct fetching *f, const char *name)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_free_ char *part = NULL;
	struct fleet_result result = { 0 };
	int fd;

	if (asprintf(&part, "%s.part", name) < 0) {
		part = NULL;
		f->missing++;
		return;
	}
	result.path = part;
	result_name_parse(name, &result.name);
	fd = fleet_result_open_at(f->folder, &result, &err);
	if (fd >= 0 && renameat(f->folder, part, f->folder, name) == 0) {
		f->fetched++;
	} else if (fd == -ENOENT) {
		f->missing++;
	} else {
		cli_warn("refused: %s", err.message ?: strerror(errno));
		unlinkat(f->folder, part, 0);
		f->refused++;
	}
	close_fd(fd);
}

static int fetching_run(struct fetching *f, struct error *err)
{
	int r = fleet_store_list(&f->store, f->folder, &f->names, err);

	if (r < 0)
		return r;
	fetching_choose(f);
	r = fetching_get(f, err);
	for (size_t i = 0; i < f->names.count && r == 0; i++)
		fetching_keep(f, f->names.names[i]);
	return r;
}

int fleet_fetch(const struct options *o)
{
	_cleanup_(fetching_deinit) struct fetching f = { .folder = -EBADF };
	_cleanup_error_ struct error err = ERROR_INIT;

	if (o->arg_count != 3) {
		error_set(&err, -EINVAL, "fleet fetch takes an order and a folder");
		error_hint(&err, "tracectl fleet fetch 17 results --fleet doors --url "
				 "https://store.example/results");
		return cli_usage(&err);
	}
	if (fleet_store_init(&f.store, o, o->args[1], &err) < 0)
		return cli_usage(&err);
	if (fetching_open(&f, o->args[2], &err) < 0 || fetching_run(&f, &err) < 0)
		return cli_fail(&err);
	f.refused += f.store.refused;
	if (f.store.refused)
		cli_warn("refused: %zu names in the store's lists, which are none of results",
			 f.store.refused);
	if (!o->quiet)
		fprintf(stderr, "%zu fetched, %zu were there, %zu missing, %zu refused\n",
			f.fetched, f.present, f.missing, f.refused);
	return f.missing || f.refused ? CLI_MISSING : CLI_WHOLE;
}
