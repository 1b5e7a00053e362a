/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/import.h"

#include "base/io.h"

/* Bytes read to detect a file's kind. */
#define BEGINNING 4096

extern const struct reader_ops reader_dat_ops;

static const struct reader_ops *const readers[] = { &reader_dat_ops };

static const struct reader_ops *reader_find(const void *data, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
		if (readers[i]->begins(data, len))
			return readers[i];
	return NULL;
}

static const struct reader_ops *reader_of_file(int fd)
{
	uint8_t head[BEGINNING];
	ssize_t n = pread_full(fd, head, sizeof(head), 0);

	return n > 0 ? reader_find(head, (size_t)n) : NULL;
}

bool import_begins(const void *data, size_t len)
{
	return reader_find(data, len);
}

bool import_wanted(int fd)
{
	return reader_of_file(fd);
}

int import_stream(int in, int stream_fd, const struct import_options *o, struct error *err)
{
	const struct reader_ops *reader = reader_of_file(in);
	struct stream_writer writer;
	int r;

	if (!reader)
		return error_set(err, -EBADMSG, "not a file that can be read as a recording");
	r = stream_writer_init(&writer, stream_fd, o->limit);
	if (r < 0)
		return error_errno(err, r, "cannot write the capture stream");
	return reader->read(in, &writer, o, err);
}
