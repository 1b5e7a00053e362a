/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tracectl report --merge`: adds up reports that --json wrote, or boards as rows. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
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
	int json_fd; /* owned; the JSON of one whose reports are rows */
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

static int merging_open(struct merging *m, const struct options *o, struct error *err)
{
	int r = 0;

	m->json_fd = input_create_temp();
	if (m->json_fd < 0)
		return error_errno(err, m->json_fd, "%s", input_temp_place());
	if (o->merge_count + o->arg_count > REPORT_MERGE_FILES_MAX)
		return error_set(err, -EINVAL, "--merge takes at most %d reports",
				 REPORT_MERGE_FILES_MAX);
	for (size_t i = 0; i < o->merge_count && r == 0; i++)
		r = merging_add(m, o->merges[i].path, err);
	for (size_t i = 0; i < o->arg_count && r == 0; i++)
		r = merging_add(m, o->args[i], err);
	return r;
}

/* Rows come in zstd's frames. */
static bool merging_has_rows(const struct merging *m, size_t i)
{
	static const char magic[] = "\x28\xb5\x2f\xfd";
	char begin[sizeof(magic) - 1];

	return pread(m->fds[i], begin, sizeof(begin), lseek(m->fds[i], 0, SEEK_CUR)) ==
		       sizeof(begin) &&
	       !memcmp(begin, magic, sizeof(begin));
}

static int merging_read_rows(const struct merging *m, struct report_merge *merge, size_t i,
			     struct error *err)
{
	const off_t from = lseek(m->fds[i], 0, SEEK_CUR), end = lseek(m->fds[i], 0, SEEK_END);
	uint64_t size;
	int r;

	if (from < 0 || end < from || lseek(m->fds[i], from, SEEK_SET) < 0 ||
	    lseek(m->json_fd, 0, SEEK_SET) < 0)
		return error_errno(err, -errno, "%s", m->paths[i]);
	r = rows_unpack(m->fds[i], (uint64_t)(end - from), m->json_fd, FLEET_FILE_MAX, &size, err);
	if (r < 0)
		return error_prefix(err, "%s", m->paths[i]);
	lseek(m->json_fd, 0, SEEK_SET);
	return report_merge_add_part(merge, m->json_fd, size, m->paths[i], err);
}

/* Parses the files; for root in a process of its own. */
static int merging_work(void *userdata, struct export_result *ret, struct error *err)
{
	const struct merging *m = userdata;
	_cleanup_(report_merge_freep) struct report_merge *merge = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r = report_merge_new(&merge);

	if (r < 0)
		return error_errno(err, r, "can't merge reports");
	for (size_t i = 0; i < m->count && r == 0; i++)
		r = merging_has_rows(m, i) ? merging_read_rows(m, merge, i, err)
					   : report_merge_add(merge, m->fds[i], m->paths[i], err);
	if (r == 0)
		r = report_merge_write(merge, m->options, &out, err);
	if (r < 0)
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

	if (merging_open(&m, o, &err) < 0)
		return cli_fail(&err);
	input_confine(-EBADF);
	if (confined_run(merging_work, &m, &result, &err) < 0)
		return cli_fail(&err);
	if (result.incomplete)
		cli_warn("a merged report is of an INCOMPLETE recording");
	gaps = export_result_gaps(&result);
	if (result.lost)
		cli_warn("events were lost in the recordings: %" PRIu64, result.lost);
	else if (gaps)
		cli_warn("events were lost in the recordings at %" PRIu64
			 " place%s (count unknown)",
			 gaps, gaps == 1 ? "" : "s");
	return result.incomplete || (o->fail_on_loss && (result.lost || gaps)) ? CLI_MISSING
									       : CLI_WHOLE;
}
