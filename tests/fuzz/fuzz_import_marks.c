/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The marks and samples of a Perfetto trace: what comes of them is a file that is read whole. */
#include "fuzz.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/io.h"
#include "formats/perfetto_read/marks.h"
#include "marks/trace_file.h"

#define LIMIT (4U << 20)

static void read_back(int fd, uint64_t count)
{
	struct scratch scratch = { .fd = -EBADF };
	struct trace_file file;

	if (trace_file_read(&file, fd, 0, &scratch, NULL) < 0 || file.cut || file.left_out ||
	    file.count != count)
		abort();
	trace_file_deinit(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int out = -EBADF;
	_cleanup_(pf_mark_writer_freep) struct pf_mark_writer *w = NULL;
	_cleanup_(pf_packets_deinit) struct pf_packets packets;
	struct pf_packet p;
	uint64_t count;
	int r;

	if (out < 0)
		out = memfd_create("marks", MFD_CLOEXEC);
	if (out < 0 || ftruncate(out, 0) < 0 || lseek(out, 0, SEEK_SET) < 0)
		abort();
	if (pf_packets_init(&packets, input_file(data, size)) < 0 ||
	    pf_mark_writer_new(&w, out, LIMIT) < 0)
		abort();
	while ((r = pf_packets_next(&packets, &p, NULL)) > 0) {
		r = pf_mark_writer_add(w, &p, NULL);
		if (r == -EDQUOT)
			return 0;
		if (r < 0)
			abort();
	}
	r = pf_mark_writer_close(w, &count, NULL);
	if (r < 0 && r != -EDQUOT)
		abort();
	if (r == 0 && lseek(out, 0, SEEK_SET) == 0)
		read_back(out, count);
	return 0;
}
