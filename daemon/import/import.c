/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "import/import.h"

#include "import/dat.h"
#include "util/io.h"

bool import_begins(const void *data, size_t len)
{
	return len >= DAT_MAGIC_SIZE && memcmp(data, DAT_MAGIC, DAT_MAGIC_SIZE) == 0;
}

bool import_wanted(int fd)
{
	uint8_t head[DAT_MAGIC_SIZE];
	ssize_t n = pread_full(fd, head, sizeof(head), 0);

	return n > 0 && import_begins(head, (size_t)n);
}

int import_stream(int in, int stream_fd, const struct import_options *o, struct error *err)
{
	_cleanup_dat_ struct dat d = { .fd = -EBADF };
	struct stream_writer writer;
	int r;

	if (!import_wanted(in))
		return error_set(err, -EBADMSG, "not a trace.dat");
	r = dat_open(&d, in, err);
	if (r == 0)
		r = dat_choose(&d, o->instance, err);
	if (r < 0)
		return r;
	r = stream_writer_init(&writer, stream_fd, o->limit);
	if (r < 0)
		return error_errno(err, r, "can't keep the recording's events");
	return dat_write(&d, &writer, err);
}
