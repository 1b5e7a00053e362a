/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet_results.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/vec.h"
#include "cli.h"
#include "confined.h"
#include "fleet/rows.h"
#include "fleet_hash.h"

#define PIECE (64U << 10)
/* fleet=, order= and board= below the folder that was named. */
#define DEPTH_MAX 4

struct finding {
	struct fleet_results *results;
	enum result_kind kind;
	size_t skipped; /* links, and what has no name of a result */
};

static bool finding_has_suffix(const char *name)
{
	static const char *const suffixes[] = { ".json", ".zst", ".traced", ".pftrace", ".gz" };
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(suffixes); i++)
		if (!strcmp(dot, suffixes[i]))
			return true;
	return false;
}

/* A page of `fleet open`, or what parquet.sql made. */
static bool finding_is_made(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (!strcmp(dot, ".html") || !strcmp(dot, ".parquet"));
}

static int finding_take(struct finding *f, const char *path)
{
	struct fleet_result result = { 0 };

	if (!result_name_parse(path, &result.name)) {
		if (finding_has_suffix(path)) {
			cli_warn("refused: %s has not the name of a result", path);
			f->results->refused++;
		} else if (!finding_is_made(path)) {
			f->skipped++;
		}
		return 0;
	}
	if (result.name.kind != f->kind)
		return 0;
	result.path = strdup(path);
	if (!result.path ||
	    vec_push(f->results->items, f->results->count, f->results->cap, result) < 0) {
		free(result.path);
		return -ENOMEM;
	}
	return 0;
}

static int finding_walk(struct finding *f, int parent, const char *name, const char *path,
			unsigned depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		r = -errno;
		close_fd(fd);
		return r;
	}
	while (r == 0 && (e = readdir(dir))) {
		_cleanup_free_ char *below = NULL;
		struct stat st;

		if (e->d_name[0] == '.' || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (asprintf(&below, "%s/%s", path, e->d_name) < 0) {
			below = NULL;
			r = -ENOMEM;
		} else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
			r = finding_walk(f, fd, e->d_name, below, depth + 1);
		} else if (S_ISREG(st.st_mode)) {
			r = finding_take(f, below);
		} else {
			f->skipped++;
		}
	}
	closedir(dir);
	return r;
}

static int compare_results(const void *a, const void *b)
{
	const struct result_name *x = &((const struct fleet_result *)a)->name,
				 *y = &((const struct fleet_result *)b)->name;
	int r = strcmp(x->fleet, y->fleet);

	r = r ?: (x->order > y->order) - (x->order < y->order);
	r = r ?: strcmp(x->board, y->board);
	r = r ?: (x->segment > y->segment) - (x->segment < y->segment);
	return r ?: strcmp(x->file, y->file);
}

int fleet_results_find(struct fleet_results *ret, const char *folder, enum result_kind kind,
		       struct error *err)
{
	/* Its own path says the fleet and the order, if folder is below them. */
	_cleanup_free_ char *path = realpath(folder, NULL);
	struct finding f = { .results = ret, .kind = kind };
	int r = path ? finding_walk(&f, AT_FDCWD, path, path, 0) : -errno;

	if (r < 0)
		error_errno(err, r, "%s", folder);
	if (r == -ENOTDIR)
		error_hint(err, "name the folder of an order: .../fleet=F/order=N");
	if (r < 0)
		return r;
	if (f.skipped)
		cli_warn("skipped in %s, as links or no results: %zu", folder, f.skipped);
	if (ret->count) {
		qsort(ret->items, ret->count, sizeof(*ret->items), compare_results);
		return 0;
	}
	error_set(err, -ENOENT, "%s has no %s of a board", folder,
		  kind == RESULT_REPORTS ? "report" : "recording");
	return error_hint(err, "results lie in fleet=F/order=N/board=B/");
}

static void fleet_result_deinit(struct fleet_result *result)
{
	free(result->path);
}

void fleet_results_deinit(struct fleet_results *results)
{
	for (size_t i = 0; i < results->count; i++)
		fleet_result_deinit(&results->items[i]);
	free(results->items);
	*results = (struct fleet_results){ 0 };
}

/* Reads the file to its end. to: a copy goes there; -EBADF: none. Returns its size. */
static int64_t fleet_result_read(const struct fleet_result *result, int fd, int to, uint64_t max,
				 struct error *err)
{
	_cleanup_free_ char *piece = malloc(PIECE);
	unsigned char hash[RESULT_HASH_SIZE];
	/* Static: on the stack, gcc 12 with AddressSanitizer does not align it to 64 bytes. */
	static struct fleet_hash h;
	uint64_t size = 0;
	ssize_t n;
	int r = fleet_hash_begin(&h, err);

	if (r < 0)
		return r;
	if (!piece)
		return error_errno(err, -ENOMEM, "%s", result->path);
	while (r == 0 && size <= max && (n = read_full(fd, piece, PIECE)) != 0) {
		if (n < 0)
			return error_errno(err, (int)n, "%s", result->path);
		fleet_hash_add(&h, piece, (size_t)n);
		size += (uint64_t)n;
		if (to >= 0)
			r = write_full(to, piece, (size_t)n);
	}
	if (r < 0)
		return error_errno(err, r, "can't keep %s", result->path);
	if (size > max)
		return error_set(err, -EBADMSG, "%s is larger than a board's result can be",
				 result->path);
	fleet_hash_end(&h, hash);
	if (!result_name_fits(&result->name, hash))
		return error_set(err, -EBADMSG, "%s is not the hash of its content", result->path);
	return (int64_t)size;
}

static int fleet_result_open_file(int dir_fd, const struct fleet_result *result, struct error *err)
{
	int fd = openat(dir_fd, result->path,
			O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return error_errno(err, -errno, "%s", result->path);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return error_set(err, -EBADMSG, "%s is no file", result->path);
}

int fleet_result_open_at(int dir_fd, const struct fleet_result *result, struct error *err)
{
	_cleanup_close_ int fd = fleet_result_open_file(dir_fd, result, err);
	int64_t size;

	if (fd < 0)
		return TAKE_FD(fd);
	size = fleet_result_read(result, fd, -EBADF, INT64_MAX, err);
	if (size < 0)
		return (int)size;
	lseek(fd, 0, SEEK_SET);
	return TAKE_FD(fd);
}

struct rows_check {
	int fd;
	uint64_t size;
};

static int rows_check_work(void *userdata, struct export_result *ret _unused_, struct error *err)
{
	const struct rows_check *c = userdata;
	uint64_t size;

	return rows_unpack(c->fd, c->size, -EBADF, FLEET_FILE_MAX, &size, err);
}

int fleet_result_check_rows(const struct fleet_result *result, int fd, struct error *err)
{
	_cleanup_export_result_ struct export_result unused = { 0 };
	struct rows_check c = { .fd = fd };
	struct stat st;
	int r;

	if (!result->name.is_packed)
		return 0;
	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "%s", result->path);
	c.size = (uint64_t)st.st_size;
	r = confined_run(rows_check_work, &c, &unused, err);
	return r < 0 ? error_prefix(err, "%s", result->path) : 0;
}

/* Appends a result at *end of the file. */
static int fleet_result_gather(struct fleet_result *result, int to, uint64_t *end,
			       struct error *err)
{
	_cleanup_close_ int fd = fleet_result_open_file(AT_FDCWD, result, err);
	int64_t size;

	if (fd < 0)
		return TAKE_FD(fd);
	/* A refused one may have left bytes behind the end. */
	lseek(to, (off_t)*end, SEEK_SET);
	size = fleet_result_read(result, fd, to, FLEET_FILE_MAX, err);
	if (size < 0)
		return (int)size;
	result->offset = *end;
	result->size = (uint64_t)size;
	*end += (uint64_t)size;
	return 0;
}

int fleet_results_gather(struct fleet_results *results, int fd, struct error *err)
{
	uint64_t end = 0;
	size_t kept = 0;

	for (size_t i = 0; i < results->count; i++) {
		_cleanup_error_ struct error why = ERROR_INIT;
		int r = fleet_result_gather(&results->items[i], fd, &end, &why);

		if (r < 0 && r != -EBADMSG)
			return error_move(err, &why);
		if (r < 0) {
			cli_warn("refused: %s", why.message);
			results->refused++;
			fleet_result_deinit(&results->items[i]);
			results->items[i].path = NULL;
			continue;
		}
		if (kept != i) {
			results->items[kept] = results->items[i];
			results->items[i].path = NULL;
		}
		kept++;
	}
	results->count = kept;
	return 0;
}
