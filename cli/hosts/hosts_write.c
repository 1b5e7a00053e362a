/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosts_write.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/parse.h"
#include "output/name.h"
#include "output/path.h"
#include "reports/report.h"

/* out.traced as out.LABEL.traced. NULL: out of memory. */
static char *labelled_name(const char *out, const char *label)
{
	const char *slash = strrchr(out, '/'), *dot = strrchr(slash ?: out, '.');
	size_t stem = dot && dot != out ? (size_t)(dot - out) : strlen(out);
	char *name;

	return asprintf(&name, "%.*s.%s%s", (int)stem, out, label, out + stem) < 0 ? NULL : name;
}

static int try_captures(const struct host_list *hosts, const char *out, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < hosts->count; i++) {
		_cleanup_output_name_ struct output_name file = OUTPUT_NAME_INIT;
		_cleanup_free_ char *name =
			hosts->count > 1 ? labelled_name(out, hosts->items[i].label) : strdup(out);

		r = name ? output_name_open(&file, name, OUTPUT_FILE, err)
			 : error_errno(err, -ENOMEM, "%s", out);
	}
	return r;
}

int hosts_try_outputs(const struct options *o, const struct host_list *hosts, const char *out,
		      const struct export_format *format)
{
	_cleanup_destination_ struct destination dest = DESTINATION_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;
	const bool in_place = path_kind(out) == PATH_IN_PLACE;
	int r;

	if (in_place && format->recording && hosts->count > 1) {
		error_set(&err, -EINVAL, "%s can't hold several captures", out);
		error_hint(&err, "name a file: each host's has its label in its name");
		return cli_usage(&err);
	}
	/* The reader of a pipe would see its end. */
	if (in_place && strcmp(out, "-") != 0)
		return 0;
	if (format->recording)
		return try_captures(hosts, out, &err) < 0 ? cli_fail(&err) : 0;
	r = destination_open(&dest, o, out);
	if (r == 0 && hosts->count > 1 && join_check_destination(&dest, &err) < 0)
		r = cli_usage(&err);
	return r;
}

static int write_capture(const struct host_input *in, const char *path, const struct options *o,
			 struct error *err)
{
	_cleanup_output_name_ struct output_name file = OUTPUT_NAME_INIT;
	_cleanup_buf_ struct buf size = BUF_INIT;
	off_t end = lseek(in->fd, 0, SEEK_END);
	int r = output_name_open(&file, path, OUTPUT_FILE, err);

	if (r < 0)
		return r;
	r = copy_range(file.fd, in->fd, 0, (uint64_t)end);
	if (r < 0)
		return output_name_explain(&file, r, err);
	r = output_name_commit(&file, err);
	format_bytes((uint64_t)end, &size);
	if (r == 0 && !o->quiet)
		cli_line(stderr, "%s: %s of %s", path, buf_string(&size) ?: "", in->path);
	return r;
}

static int write_captures(const struct options *o, const struct host_input *inputs, size_t count,
			  bool labelled, const char *out, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		_cleanup_free_ char *name =
			labelled ? labelled_name(out, inputs[i].path) : strdup(out);

		r = name ? write_capture(&inputs[i], name, o, err)
			 : error_errno(err, -ENOMEM, "%s", out);
	}
	return r;
}

/* For commands that take a recording's path. */
#define FD_PATH_BYTES 32

static void put_fd_path(char path[FD_PATH_BYTES], int fd)
{
	snprintf(path, FD_PATH_BYTES, "/proc/self/fd/%d", fd);
}

/* One host's capture, by the usual way. */
static int convert_one(const struct options *o, const struct host_input *in, const char *out,
		       const struct export_format *format)
{
	char path[FD_PATH_BYTES];
	char *args[] = { path, NULL };
	struct options one = *o;

	put_fd_path(path, in->fd);
	one.args = args;
	one.arg_count = 1;
	one.output = out;
	one.hosts.count = 0;
	one.whole = true;
	one.of_host = in->path;
	if (!format->has_tables)
		one.reports.count = 0;
	return command_convert.run(&one);
}

static int write_files(const struct options *o, struct host_input *inputs, size_t count,
		       bool several, const char *out, const struct export_format *format,
		       struct error *err)
{
	if (format->recording)
		return write_captures(o, inputs, count, several, out, err) < 0 ? cli_fail(err)
									       : CLI_WHOLE;
	return several ? join_captures(o, inputs, count, out) : convert_one(o, inputs, out, format);
}

static int write_reports(const struct options *o, const struct host_input *inputs, size_t count,
			 bool several)
{
	char text[HOST_PARTS_MAX][FD_PATH_BYTES], *paths[HOST_PARTS_MAX];
	struct options quiet = *o;

	/* An output of several hosts has said how their clocks are tied. */
	quiet.quiet |= o->output != NULL;
	for (size_t i = 0; i < count; i++) {
		put_fd_path(text[i], inputs[i].fd);
		paths[i] = text[i];
	}
	return report_after_hosts(&quiet, paths, count, several);
}

/* Landlock lets a file have no name in another folder than its own: then it is copied. */
static int keep_capture(int fd, const char *path)
{
	_cleanup_close_ int copy = -EBADF;
	char from[FD_PATH_BYTES];
	int r;

	put_fd_path(from, fd);
	if (linkat(AT_FDCWD, from, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
		return 0;
	copy = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = copy < 0 ? -errno : copy_range(copy, fd, 0, (uint64_t)lseek(fd, 0, SEEK_END));
	if (r < 0 && copy >= 0)
		unlink(path);
	return r;
}

void hosts_keep_captures(const struct host_input *inputs, size_t count)
{
	_cleanup_buf_ struct buf kept = BUF_INIT;
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s/tracectl-XXXXXX", input_temp_place());
	if (!mkdtemp(folder))
		return cli_warn("the recording is lost: %s: %m", folder);
	for (size_t i = 0; i < count; i++) {
		char path[PATH_MAX + NAME_MAX];
		int r;

		snprintf(path, sizeof(path), "%s/%s.traced", folder, inputs[i].path);
		r = keep_capture(inputs[i].fd, path);
		if (r < 0)
			cli_warn("%s: its recording is lost: %s: %s", inputs[i].path, path,
				 strerror(-r));
		else
			buf_printf(&kept, " %s", path);
	}
	if (kept.len && buf_string(&kept))
		cli_warn("what was recorded is safe: tracectl convert%s -o FILE", kept.data);
	else
		rmdir(folder);
}

int hosts_write_captures(const struct options *o, struct host_input *inputs, size_t count,
			 bool several, const char *out, const struct export_format *format,
			 struct error *err)
{
	struct options files = *o;
	int status = CLI_WHOLE, reported;

	if (!o->reports.count)
		return write_files(o, inputs, count, several, out, format, err);
	files.report_follows = true;
	files.json = false;
	if (o->output)
		status = write_files(&files, inputs, count, several, out, format, err);
	reported = write_reports(o, inputs, count, several);
	return status ?: reported;
}
