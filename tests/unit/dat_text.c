/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "dat_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "formats/import.h"
#include "memory_file.h"

int dat_to_text(const struct buf *dat, const char *instance, struct export_result *result,
		struct buf *out, struct error *err)
{
	_cleanup_close_ int in = memory_file(dat->data, dat->len), stream = memory_file("", 0);
	const struct import_options o = { .instance = instance };
	struct exported e = { .options = { .format = "txt", .threads = 1, .pages_fd = in } };
	int r = import_stream(in, stream, &o, err);

	if (r < 0)
		return r;
	export_whole(&e, stream);
	buf_deinit(out);
	*out = e.file;
	*result = e.result;
	return 0;
}

void stream_text(int stream, int pages, struct buf *text)
{
	struct exported e = {
		.options = { .format = "txt",
			     .threads = 1,
			     .raw_addresses = true,
			     .pages_fd = pages },
	};

	export_whole(&e, stream);
	export_result_deinit(&e.result);
	buf_deinit(text);
	*text = e.file;
}

void maker_dat_pages(struct maker *m, unsigned word_size, bool big_endian, unsigned pages)
{
	uint64_t ts = 1000000000;

	maker_init(m, word_size, big_endian, 1024);
	for (unsigned i = 0; i < pages; i++) {
		page_begin(m, ts);
		for (unsigned k = 0; k < 3; k++)
			event_number(m, ts += 1000, 7, i * 3 + k);
		page_end(m, i == 1 ? 5 : 0);
	}
}
