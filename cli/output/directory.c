/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "output/directory.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "export/segment.h"
#include "output/name.h"

/* State of the writer process. */
struct directory_maker {
	struct output_name name;
	int file_fd;
};

/* The name comes from the exporter, which may be compromised. */
static bool file_name_is_good(const char *name, size_t len)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

	if (!len || len > SEGMENT_NAME_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!memchr(good, name[i], sizeof(good) - 1))
			return false;
	return true;
}

/* In a folder where others may write, the name may be somebody's pipe, or a link to a file. */
static int directory_open_file(int folder, const char *name)
{
	_cleanup_close_ int fd = openat(folder, name,
					O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW |
						O_NONBLOCK | O_NOCTTY,
					0666);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return -EPERM;
	return TAKE_FD(fd);
}

static int directory_begin_file(struct directory_maker *m, const struct frame *frame,
				struct error *err)
{
	char name[SEGMENT_NAME_MAX + 1] = "";
	int folder;

	if (!file_name_is_good(frame->data, frame->len))
		return framed_refuse(err);
	memcpy(name, frame->data, frame->len);
	m->file_fd = close_fd(m->file_fd);
	folder = output_name_folder(&m->name);
	if (folder < 0)
		return output_name_explain(&m->name, folder, err);
	m->file_fd = directory_open_file(folder, name);
	return output_name_explain(&m->name, MIN(m->file_fd, 0), err);
}

static int directory_take(void *maker, const struct frame *frame, struct error *err)
{
	struct directory_maker *m = maker;

	switch (frame->kind) {
	case SEGMENT_FILE:
		return directory_begin_file(m, frame, err);
	case SEGMENT_DATA:
		if (m->file_fd < 0)
			return framed_refuse(err);
		return output_name_explain(&m->name,
					   write_full(m->file_fd, frame->data, frame->len), err);
	case SEGMENT_LAST:
		m->file_fd = close_fd(m->file_fd);
		return output_name_commit(&m->name, err);
	default:
		return framed_refuse(err);
	}
}

static void directory_end(void *maker)
{
	struct directory_maker *m = maker;

	output_name_deinit(&m->name);
}

int directory_start(struct framed *ret, const char *path, struct error *err)
{
	static const struct framed_ops ops = {
		.report_size = sizeof(struct framed_report),
		.take = directory_take,
		.end = directory_end,
	};
	struct directory_maker m = { .name = OUTPUT_NAME_INIT, .file_fd = -EBADF };
	int r = output_name_open(&m.name, path, OUTPUT_DIRECTORY, err);

	if (r == 0)
		r = framed_start(ret, &ops, &m, path, m.name.dir_fd, err);
	/* The process owns the directory now. */
	if (r == 0)
		output_name_leave(&m.name);
	output_name_deinit(&m.name);
	return r;
}
