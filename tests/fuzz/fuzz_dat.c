/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Converts a trace.dat to a capture stream, if it can be converted. Other targets decode streams;
 * this one checks that a reader takes the stream from its first chunk to its END.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "formats/import.h"
#include "fuzz.h"
#include "stream/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int out = -EBADF;
	_cleanup_buf_ struct buf payload = BUF_INIT;
	struct stream_reader reader;
	struct chunk chunk = { 0 };
	int in = input_file(data, size), r;

	if (out < 0)
		out = memfd_create("stream", MFD_CLOEXEC);
	if (out < 0 || ftruncate(out, 0) < 0 || lseek(out, 0, SEEK_SET) < 0)
		abort();
	if (import_stream(in, out, &(struct import_options){ 0 }, NULL) < 0)
		return 0;
	if (stream_reader_init(&reader, out, NULL) < 0)
		abort();
	reader.pages_fd = in;
	while ((r = stream_reader_next(&reader, &chunk, NULL)) > 0)
		if (chunk.type == CHUNK_SUBBUFS &&
		    (stream_reader_load(&reader, &chunk, &payload, NULL) < 0 ||
		     payload.len != chunk.length))
			abort();
	if (r < 0 || chunk.type != CHUNK_END)
		abort();
	return 0;
}
