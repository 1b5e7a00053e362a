/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Packets behind those of a Perfetto trace that tells the formats of all its events, turned back
 * into a capture stream.
 *
 * Byte 0: which machine's trace, in which form. The rest: packets.
 */
#include "fuzz.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/io.h"
#include "formats/formats.h"
#include "import_check.h"
#include "make_kinds.h"

#define S UINT64_C(1000000000)

static const struct {
	unsigned word_size;
	bool big_endian, legacy_generic;
} kinds[] = {
	{ 8, false, false }, { 8, true, false }, { 4, false, false },
	{ 4, true, false },  { 8, false, true }, { 4, true, true },
};

static struct buf bases[ARRAY_SIZE(kinds)];

static void make_base(size_t kind)
{
	struct export_options o = { .format = "pftrace",
				    .threads = 1,
				    .perfetto.legacy_generic = kinds[kind].legacy_generic };
	_cleanup_export_result_ struct export_result result = { 0 };
	int out = memfd_create("trace", MFD_CLOEXEC);
	struct maker m;
	ssize_t n;

	maker_init(&m, kinds[kind].word_size, kinds[kind].big_endian, 4096);
	maker_head(&m);
	maker_kinds(&m);
	page_begin(&m, S);
	event_kinds(&m, S);
	event_number(&m, 2 * S, 1, 2);
	event_print_mark(&m, 2 * S + 1, 1, "B|1|mark");
	event_switch(&m, 2 * S + 2, 1, "one", 0, 120, 2, "two");
	event_newtask(&m, 2 * S + 3, 1, 3, "three", 0);
	event_rename(&m, 2 * S + 4, 1, "one", "four");
	page_end(&m, 0);
	maker_flush(&m, 0, BUFFER_MAIN, 0);
	if (export_stream(m.fd, out, &o, &result, NULL) < 0 ||
	    !buf_reserve(&bases[kind], (size_t)result.bytes))
		abort();
	n = pread_full(out, bases[kind].data, (size_t)result.bytes, 0);
	if (n < 0)
		abort();
	bases[kind].len = (size_t)n;
	close_fd(out);
	maker_deinit(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct buf trace;

	if (!bases[0].len)
		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
			make_base(i);
	if (!size)
		return 0;
	buf_clear(&trace);
	buf_append(&trace, bases[*data % ARRAY_SIZE(kinds)].data,
		   bases[*data % ARRAY_SIZE(kinds)].len);
	buf_append(&trace, data + 1, size - 1);
	if (!buf_string(&trace))
		abort();
	import_check((const uint8_t *)trace.data, trace.len);
	return 0;
}
