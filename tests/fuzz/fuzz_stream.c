/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A capture stream: all its chunks, loaded in each way. */
#include "fuzz.h"

#include "stream/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf b = BUF_INIT;
	int fd = input_file(data, size);
	struct stream_reader r;
	struct chunk c;

	if (stream_reader_init(&r, fd, &err) < 0)
		return 0;
	while (stream_reader_next(&r, &c, &err) > 0) {
		if (stream_reader_load(&r, &c, &b, &err) == 0 && !c.flags && b.len != c.length)
			abort();
		stream_reader_verify(&r, &c, &b, &err);
		stream_reader_load_part(&r, &c, c.length / 2, c.length / 4, &b, &err);
	}
	return 0;
}
