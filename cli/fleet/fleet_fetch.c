/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tracectl fleet fetch`: copies an order's results from a store. A file gets its name when its
 * content has that hash. Another run goes on with the rest, and with files that were changed since.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/plural.h"
#include "curl.h"
#include "fleet.h"
#include "fleet_store.h"
#include "input.h"

/* A recording has at most so many bytes. */
#define FILE_MAX (UINT64_C(1) << 30)
/* A file counts for at least so many: it takes blocks, and perhaps a folder. The bound of its size
 * also is one of a log that curl writes to. */
#define FILE_MIN (UINT64_C(64) << 10)
#define ALL_MAX (UINT64_C(4) << 30)
#define KIB(bytes) (((bytes) + 1023) >> 10)

struct fetching {
	struct fleet_store store;
	struct listing names;
	int folder;
	bool is_new;   /* this run made the folder */
	uint64_t rest; /* bytes that may still come */
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
	f->is_new = mkdir(folder, 0777) == 0;
	if (!f->is_new && errno != EEXIST)
		return error_errno(err, -errno, "%s", folder);
	f->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return f->folder < 0 ? error_errno(err, -errno, "%s", folder) : 0;
}

/* Whether it is there, with the content that its name says. Otherwise it is fetched again. */
static bool fetching_has(const struct fetching *f, char *name)
{
	_cleanup_error_ struct error why = ERROR_INIT;
	struct fleet_result result = { .path = name };
	int fd;

	if (!result_name_parse(name, &result.name))
		return false;
	fd = fleet_result_open_at(f->folder, &result, &why);
	if (fd < 0 && fd != -ENOENT)
		cli_warn("fetched again: %s", why.message ?: "out of memory");
	close_fd(fd);
	return fd >= 0;
}

/* Leaves out what is there, and recordings unless they are wanted. */
static void fetching_choose(struct fetching *f)
{
	const bool captures = f->store.o->capture;
	size_t kept = 0;

	for (size_t i = 0; i < f->names.count; i++) {
		struct listing_item item = f->names.items[i];
		char *name = item.name;
		struct result_name parts;
		const bool is_wanted = captures || !result_name_parse(name, &parts) ||
				       parts.kind != RESULT_CAPTURE;
		bool is_there = is_wanted && fetching_has(f, name);

		if (is_there || !is_wanted) {
			f->present += is_there;
			free(name);
		} else if (item.size > FILE_MAX) {
			cli_warn("refused: %s has no size of a result in the store's list", name);
			f->refused++;
			free(name);
		} else {
			f->names.items[kept++] = item;
		}
	}
	f->names.count = kept;
}

static uint64_t item_cost(const struct listing_item *item)
{
	return MAX(item->size, FILE_MIN);
}

static int compare_costs(const void *a, const void *b)
{
	uint64_t x = item_cost(a), y = item_cost(b);

	return (x < y) - (x > y);
}

/* Sizes as the store claims them. */
static int fetching_check(const struct fetching *f, struct error *err)
{
	uint64_t all = 0;

	for (size_t i = 0; i < f->names.count; i++)
		all += item_cost(&f->names.items[i]);
	if (all <= f->rest)
		return 0;
	error_set(err, -EFBIG, "%zu result%s %" PRIu64 " KiB, and --max-size is %" PRIu64 " KiB",
		  f->names.count, plural(f->names.count, " has", "s have"), KIB(all),
		  f->rest >> 10);
	return error_hint(err, "--max-size %" PRIu64 "K fetches them; each counts as 64K at least",
			  KIB(all));
}

static int fetching_get(struct fetching *f, const struct listing_item *items, size_t count,
			uint64_t file_max, struct error *err)
{
	_cleanup_close_ int fd = input_create_temp();
	_cleanup_buf_ struct buf list = BUF_INIT;
	const struct fleet_store *s = &f->store;
	int r = fd;

	for (size_t i = 0; i < count; i++) {
		buf_puts(&list, "url = \"");
		fleet_store_put_url(s, items[i].name, &list);
		buf_printf(&list, "\"\noutput = \"%s.part\"\n", items[i].name);
	}
	if (r >= 0)
		r = buf_error(&list) ?: write_full(fd, list.data, list.len);
	if (r < 0)
		return error_errno(err, r, "the list for curl");
	r = curl_get_all(s->o->curl, fd, file_max, f->folder, err);
	return r < 0 ? r : 0;
}

/* Files that are refused count, too. */
static void fetching_count(struct fetching *f, const char *part)
{
	struct stat st;

	if (fstatat(f->folder, part, &st, AT_SYMLINK_NOFOLLOW) == 0)
		f->rest -= MIN((uint64_t)st.st_size, f->rest);
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
	fetching_count(f, part);
	result.path = part;
	result_name_parse(name, &result.name);
	fd = fleet_result_open_at(f->folder, &result, &err);
	if (fd >= 0 && fleet_result_check_rows(&result, fd, &err) == 0 &&
	    renameat(f->folder, part, f->folder, name) == 0) {
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

/*
 * Of n files that may each have as many bytes as the largest, all fit into the rest. Largest ones
 * come first, so a store whose files have the sizes of its list leaves room for each.
 */
static int fetching_get_all(struct fetching *f, struct error *err)
{
	struct listing_item *items = f->names.items;
	size_t count = f->names.count, n;
	int r = 0;

	if (count)
		qsort(items, count, sizeof(*items), compare_costs);
	for (size_t i = 0; i < count && r == 0; i += n) {
		uint64_t file_max = item_cost(&items[i]);

		n = (size_t)MIN(count - i, f->rest / file_max);
		if (!n)
			return error_set(err, -EFBIG, "the store sends more than its list says");
		r = fetching_get(f, &items[i], n, file_max, err);
		for (size_t j = i; j < i + n && r == 0; j++)
			fetching_keep(f, items[j].name);
	}
	return r;
}

static int fetching_run(struct fetching *f, struct error *err)
{
	int r = fleet_store_list(&f->store, f->folder, &f->names, err);

	if (r < 0)
		return r;
	fetching_choose(f);
	f->rest = f->store.o->max_size ?: ALL_MAX;
	r = fetching_check(f, err);
	return r < 0 ? r : fetching_get_all(f, err);
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
	if (fetching_open(&f, o->args[2], &err) < 0 || fetching_run(&f, &err) < 0) {
		/* rmdir() fails if a file was fetched. */
		if (f.is_new)
			rmdir(o->args[2]);
		return cli_fail(&err);
	}
	f.refused += f.store.refused;
	if (f.store.refused)
		cli_warn("refused: %zu name%s in the store's lists, %s of results", f.store.refused,
			 plural_s(f.store.refused),
			 plural(f.store.refused, "which is none", "which are none"));
	if (!o->quiet)
		fprintf(stderr, "%zu fetched, %zu were there, %zu missing, %zu refused\n",
			f.fetched, f.present, f.missing, f.refused);
	return f.missing || f.refused ? CLI_MISSING : CLI_WHOLE;
}
