/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tracectl report --merge`: adds up reports that --json wrote, or boards as rows. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/plural.h"
#include "cli.h"
#include "confined.h"
#include "fleet/fleet_results.h"
#include "fleet/rows.h"
#include "input.h"
#include "report.h"
#include "report/merge.h"

struct merging {
	const struct report_options *options;
	const char *paths[REPORT_MERGE_FILES_MAX];
	int fds[REPORT_MERGE_FILES_MAX]; /* owned */
	size_t count;
	bool some_failed; /* to open: reported already */
	int json_fd;	  /* owned; the JSON of a file that is compressed */
};

static void report_merging_deinit(struct merging *m)
{
	for (size_t i = 0; i < m->count; i++)
		close_fd(m->fds[i]);
	close_fd(m->json_fd);
}

static int merging_add(struct merging *m, const char *path, struct error *err)
{
	const bool is_stdin = !strcmp(path, "-");
	_cleanup_close_ int fd = -EBADF;
	int r;

	fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
		      : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return error_errno(err, -errno, "%s", path);
	r = input_keep(&fd, path, INPUT_REPORT, err);
	if (r < 0)
		return r;
	m->paths[m->count] = is_stdin ? "standard input" : path;
	m->fds[m->count++] = TAKE_FD(fd);
	return 0;
}

/* An error of one file must not hide that of another. */
static void merging_try(struct merging *m, const char *path)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	if (merging_add(m, path, &err) >= 0)
		return;
	if (err.code == ENOENT && report_is_name(path))
		error_hint(&err, "--merge shows all reports of its files: name the files alone");
	cli_fail(&err);
	m->some_failed = true;
}

static int merging_open(struct merging *m, const struct options *o, struct error *err)
{
	m->json_fd = input_create_temp();
	if (m->json_fd < 0)
		return error_errno(err, m->json_fd, "%s", input_temp_place());
	if (o->merge_count + o->arg_count > REPORT_MERGE_FILES_MAX)
		return error_set(err, -EINVAL, "--merge takes at most %d reports",
				 REPORT_MERGE_FILES_MAX);
	for (size_t i = 0; i < o->merge_count; i++)
		merging_try(m, o->merges[i].path);
	for (size_t i = 0; i < o->arg_count; i++)
		merging_try(m, o->args[i]);
	return 0;
}

/* Whether the file begins with these bytes of a compressed one. */
static bool merging_begins(const struct merging *m, size_t i, const char *magic)
{
	char begin[8];
	const size_t len = strlen(magic);

	return pread(m->fds[i], begin, len, lseek(m->fds[i], 0, SEEK_CUR)) == (ssize_t)len &&
	       !memcmp(begin, magic, len);
}

static int merging_unpack_rows(const struct merging *m, size_t i, struct error *err)
{
	const off_t from = lseek(m->fds[i], 0, SEEK_CUR), end = lseek(m->fds[i], 0, SEEK_END);
	uint64_t size;
	int r;

	if (from < 0 || end < from || lseek(m->fds[i], from, SEEK_SET) < 0)
		return error_errno(err, -errno, "%s", m->paths[i]);
	r = rows_unpack(m->fds[i], (uint64_t)(end - from), m->json_fd, FLEET_FILE_MAX, &size, err);
	if (r == -EBADMSG)
		error_hint(err,
			   "a .zst has rows (.ndjson.zst); JSON is read as .json and .json.gz");
	return r < 0 ? error_prefix(err, "%s", m->paths[i]) : 0;
}

/* Rows come in zstd's frames, JSON as it is or by gzip. */
static int merging_read_file(const struct merging *m, struct report_merge *merge, size_t i,
			     struct error *err)
{
	const bool rows = merging_begins(m, i, "\x28\xb5\x2f\xfd");
	off_t size;
	int r;

	if (!rows && !merging_begins(m, i, "\x1f\x8b"))
		return report_merge_add(merge, m->fds[i], m->paths[i], err);
	if (lseek(m->json_fd, 0, SEEK_SET) < 0)
		return error_errno(err, -errno, "%s", m->paths[i]);
	r = rows ? merging_unpack_rows(m, i, err)
		 : input_unpack_into(m->fds[i], m->json_fd, m->paths[i], INPUT_REPORT, err);
	if (r < 0)
		return r;
	size = lseek(m->json_fd, 0, SEEK_CUR);
	if (size < 0 || lseek(m->json_fd, 0, SEEK_SET) < 0)
		return error_errno(err, -errno, "%s", m->paths[i]);
	return report_merge_add_part(merge, m->json_fd, (uint64_t)size, m->paths[i], err);
}

static int merging_restart(struct report_merge **merge, struct error *err)
{
	int r;

	*merge = report_merge_free(*merge);
	r = report_merge_new(merge);
	return r < 0 ? error_errno(err, r, "can't merge reports") : 0;
}

/* A file that is damaged, or can't be added, does not hide another one. */
static int merging_read_all(const struct merging *m, struct report_merge **merge, struct error *err)
{
	int r = merging_restart(merge, err), failed = 0;

	for (size_t i = 0; i < m->count && r == 0; i++) {
		_cleanup_error_ struct error why = ERROR_INIT;

		r = merging_read_file(m, *merge, i, &why);
		if (r == 0)
			continue;
		failed = error_add(err, &why);
		if (r == -EBADMSG || r == -EINVAL)
			r = merging_restart(merge, err);
	}
	return failed ?: r;
}

/* Parses the files; for root in a process of its own. */
static int merging_work(void *userdata, struct export_result *ret, struct error *err)
{
	const struct merging *m = userdata;
	_cleanup_(report_merge_freep) struct report_merge *merge = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r = merging_read_all(m, &merge, err);

	if (r == 0 && !m->some_failed)
		r = report_merge_write(merge, m->options, &out, err);
	if (r < 0 || m->some_failed)
		return r;
	ret->bytes = out.len;
	r = report_merge_tell(merge, ret);
	if (r == 0)
		r = write_full(STDOUT_FILENO, out.data, out.len);
	return r < 0 ? error_errno(err, r, "can't write the report") : 0;
}

int report_merge_files(const struct options *o, const struct report_options *options)
{
	_cleanup_(report_merging_deinit) struct merging m = { .options = options,
							      .json_fd = -EBADF };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	uint64_t gaps;
	bool missing;

	if (merging_open(&m, o, &err) < 0)
		return cli_fail(&err);
	input_confine(-EBADF);
	if (confined_run(merging_work, &m, &result, &err) < 0)
		return cli_fail(&err);
	if (m.some_failed)
		return CLI_FAILED;
	if (result.incomplete)
		cli_warn("a merged report is of an INCOMPLETE recording");
	gaps = export_result_gaps(&result);
	if (result.lost)
		cli_warn("events were lost in the recordings: %" PRIu64, result.lost);
	else if (gaps)
		cli_warn("events were lost in the recordings at %" PRIu64
			 " place%s (count unknown)",
			 gaps, plural_s(gaps));
	if (result.marks_lost)
		cli_warn("marks of applications were lost in the recordings");
	missing = result.lost || gaps || result.marks_lost;
	return result.incomplete || (o->fail_on_loss && missing) ? CLI_MISSING : CLI_WHOLE;
}
