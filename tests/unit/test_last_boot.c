/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A ring of the last boot: its addresses, the log of the crash, and both through the exporter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/io.h"
#include "exported.h"
#include "make_stream.h"
#include "marks/crash_log.h"
#include "random_series.h"
#include "trace/last_boot.h"

static const char symbols[] = "0000000000000000 A fixed_percpu_data\n"
			      "ffffffff91000000 T _text\n"
			      "ffffffff91000040 t vfs_read\n"
			      "ffffffffc0402010 t dummy_xmit\t[dummy]\n"
			      "ffffffffc0408000 d dummy_data\t[dummy]\n"
			      "ffffffffc0500010 t other\t[other]\n"
			      "ffffffffc0600000 t bpf_prog_1\t[bpf]\n";
static const char modules[] = "dummy_more 12288 0 - Live 0xffffffffc0900000\n"
			      "dummy 12288 0 - Live 0xffffffffc0402000\n"
			      "other 12288 1 dummy,more, Live 0x0000000000000000 (O)\n";

static ProtobufCBinaryData bytes(const char *text)
{
	return (ProtobufCBinaryData){ strlen(text), (uint8_t *)(uintptr_t)text };
}

static Traced__Capture__LastBoot message_of(const char *info)
{
	Traced__Capture__LastBoot m = TRACED__CAPTURE__LAST_BOOT__INIT;

	m.info = bytes(info);
	m.modules = bytes(modules);
	m.text = 0xffffffff91000000;
	m.end = 0xffffffff93000000;
	return m;
}

static void check_symbols(const char *info, const char *wanted)
{
	Traced__Capture__LastBoot m = message_of(info);
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct last_boot b;

	buf_puts(&text, symbols);
	assert_int_equal(last_boot_read(&b, &m), 0);
	last_boot_move_symbols(&b, &text);
	assert_non_null(buf_string(&text));
	assert_string_equal(text.data, wanted);
	last_boot_deinit(&b);
}

#define KERNEL_THEN                                                                                \
	"0000000000000000 A fixed_percpu_data\n"                                                   \
	"ffffffff81000000 T _text\n"                                                               \
	"ffffffff81000040 t vfs_read\n"

static void places_of_then(void **state _unused_)
{
	/* Linux 6.12: no word of modules. */
	check_symbols("text delta:\t268435456\ndata delta:\t268435456\n", KERNEL_THEN);
	/* Later ones: only the code of modules that are still there. */
	check_symbols("ffffffff81000000\t[kernel]\nffffffffc0002000\tdummy\n"
		      "ffffffffc0100000\tother\nffffffffc0200000\tgone\n",
		      KERNEL_THEN "ffffffffc0002010 t dummy_xmit\t[dummy]\n");
	check_symbols("text delta:\t-268435456", "0000000000000000 A fixed_percpu_data\n"
						 "ffffffffa1000000 T _text\n"
						 "ffffffffa1000040 t vfs_read\n");
}

static void places_that_make_no_sense(void **state _unused_)
{
	static const char *const infos[] = {
		"",
		"\n\n",
		"# Current\n",
		"0\t[kernel]\n",
		"39000000\t[kernel]\n",
		"ffffffff81000000",
		"ffffffff81000000\t[kernel",
		"ffffffff81000000\t[kernel] x\n",
		"ffffffffff81000000\t[kernel]\n",
		"text delta:\t\n",
		"text delta:\t12x\n",
		"text delta:\t99999999999999999999999\n",
		"\tdummy\nffffffffc0002000\t\nffffffffc0002000\tdumm\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(infos); i++)
		check_symbols(infos[i], "");
}

static void strings_of_then(void **state _unused_)
{
	Traced__Capture__LastBoot m = message_of("text delta:\t268435456\n");
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct last_boot b;

	buf_puts(&text, "0xffffffff92000000 : \"of the kernel\"\n"
			"0xffffffffc0402000 : \"of a module\"\n"
			"nonsense\n0x : \"none\"\n"
			"0xffffffff92000010 : \"torn");
	assert_int_equal(last_boot_read(&b, &m), 0);
	last_boot_move_printk(&b, &text);
	assert_string_equal(buf_string(&text), "0xffffffff82000000 : \"of the kernel\"\n");
	last_boot_deinit(&b);
}

/* Bytes of the alphabets that the parsers look for. */
static void fill(uint64_t *random, char *to, size_t len)
{
	static const char some[] = "0123456789abcdef<>[].- \t\nTtd:[kernel]text delta:\t";

	for (size_t i = 0; i < len; i++)
		to[i] = some[random_next(random) % sizeof(some)];
}

static void hostile_texts(void **state _unused_)
{
	uint64_t random = RANDOM_FIRST;
	Traced__Capture__Header header = TRACED__CAPTURE__HEADER__INIT;
	char clock[] = "local", info[96], text[200];

	header.trace_clock = clock;
	for (int i = 0; i < 20000; i++) {
		Traced__Capture__PstoreFile file = TRACED__CAPTURE__PSTORE_FILE__INIT;
		Traced__Capture__PstoreFile *files[] = { &file };
		Traced__Capture__LastBoot m = message_of("");
		struct trace_info trace = { .header = &header, .last_boot = &m };
		_cleanup_buf_ struct buf moved = BUF_INIT;
		struct crash_log log;
		struct last_boot b;
		struct mark mark;
		uint64_t before = 0;

		fill(&random, info, sizeof(info));
		fill(&random, text, sizeof(text));
		m.info = (ProtobufCBinaryData){ sizeof(info), (uint8_t *)info };
		file.text = (ProtobufCBinaryData){ sizeof(text), (uint8_t *)text };
		m.pstore = files;
		m.n_pstore = 1;
		assert_int_equal(last_boot_read(&b, &m), 0);
		b.known |= i % 2;
		buf_append(&moved, text, sizeof(text));
		if (i % 4 < 2)
			last_boot_move_symbols(&b, &moved);
		else
			last_boot_move_printk(&b, &moved);
		assert_true(moved.len <= sizeof(text));
		last_boot_deinit(&b);
		assert_int_equal(crash_log_read(&log, &trace), 0);
		while (crash_log_next(&log, &mark)) {
			assert_true(mark.ts >= before);
			before = mark.ts;
		}
		crash_log_deinit(&log);
	}
}

static void lines_of_the_log(void **state _unused_)
{
	Traced__Capture__PstoreFile file[2] = { TRACED__CAPTURE__PSTORE_FILE__INIT,
						TRACED__CAPTURE__PSTORE_FILE__INIT };
	Traced__Capture__PstoreFile *files[] = { &file[0], &file[1] };
	Traced__Capture__LastBoot m = message_of("");
	Traced__Capture__Header header = TRACED__CAPTURE__HEADER__INIT;
	struct trace_info trace = { .header = &header, .last_boot = &m };
	char local[] = "local", boot[] = "boot";
	struct crash_log log;
	struct mark mark;

	/* The last part is the older one. */
	file[0].text = bytes("Panic#1 Part1\n<0>[   12.345678] Kernel panic\n"
			     "<0>[   12.345678][ T7] CPU: 1\nno time\n<4>[12.3] short\n");
	file[1].text = bytes("Panic#1 Part2\n[    2.000001] first\n<6>[99999999999.000001] far\n"
			     "<6>[    3.000001]");
	m.pstore = files;
	m.n_pstore = 2;
	header.trace_clock = local;
	assert_int_equal(crash_log_read(&log, &trace), 0);
	assert_int_equal(log.count, 3);
	assert_int_equal(log.untimed, 4);
	assert_true(crash_log_next(&log, &mark));
	assert_int_equal(mark.ts, 2000001000);
	assert_int_equal(mark.part[PART_NAME].len, 5);
	assert_memory_equal(mark.part[PART_NAME].data, "first", 5);
	assert_true(crash_log_next(&log, &mark));
	assert_memory_equal(mark.part[PART_NAME].data, "Kernel panic", 12);
	assert_true(crash_log_next(&log, &mark));
	assert_int_equal(mark.ts, 12345678000);
	assert_memory_equal(mark.part[PART_NAME].data, "[ T7] CPU: 1", 12);
	assert_false(crash_log_next(&log, &mark));
	crash_log_deinit(&log);
	/* Another clock says nothing about printk's. */
	header.trace_clock = boot;
	assert_int_equal(crash_log_read(&log, &trace), 0);
	assert_int_equal(log.count, 0);
	assert_int_equal(log.untimed, 7);
	crash_log_deinit(&log);
}

/* A stream of one event, with such a chunk. */
static void make_crash(struct maker *m, const Traced__Capture__LastBoot *boot)
{
	maker_init(m, 8, false, 4096);
	m->clock = "local";
	maker_head(m);
	assert_int_equal(stream_write_message(&m->writer, CHUNK_LAST_BOOT, &boot->base), 0);
	page_begin(m, 1000000000);
	event_number(m, 1000000000, 7, 1);
	maker_finish(m);
}

static void a_crash_in_the_output(void **state _unused_)
{
	_cleanup_exported_ struct exported e = { .options = { .format = "json" } };
	Traced__Capture__PstoreFile file = TRACED__CAPTURE__PSTORE_FILE__INIT;
	Traced__Capture__PstoreFile *files[] = { &file };
	Traced__Capture__LastBoot boot = message_of("text delta:\t0\n");
	const char *before, *crash, *after;
	struct maker m;

	file.text =
		bytes("Panic#1 Part1\n<6>[    0.500000] before it\n<0>[    2.000000] after it\n");
	boot.pstore = files;
	boot.n_pstore = 1;
	make_crash(&m, &boot);
	export_whole(&e, m.fd);
	before = strstr(e.file.data, "before it");
	crash = strstr(e.file.data, "the last event before the machine started anew");
	after = strstr(e.file.data, "after it");
	assert_non_null(before);
	assert_true(before < crash && crash < after);
	maker_deinit(&m);
}

/* Names are missing, and the output says so. */
static void an_unknown_place_is_told(void **state _unused_)
{
	_cleanup_exported_ struct exported e = { .options = { .format = "txt" } };
	Traced__Capture__LastBoot boot = message_of("39000000\t[kernel]\n");
	bool told = false;
	struct maker m;

	make_crash(&m, &boot);
	export_whole(&e, m.fd);
	for (size_t i = 0; i < e.result.warning_count; i++)
		told |= strstr(e.result.warnings[i], "kernel functions have no names") != NULL;
	assert_true(told);
	maker_deinit(&m);
}

/* A module that is not loaded now has no symbols in the recording. */
static void modules_that_are_gone_are_named(void **state _unused_)
{
	_cleanup_exported_ struct exported e = { .options = { .format = "txt" } };
	Traced__Capture__LastBoot boot = message_of(
		"ffffffff81000000\t[kernel]\nffffffffc0002000\tdummy\n"
		"ffffffffc0100000\tother\nffffffffc0200000\tgone\nffffffffc0300000\tmore\n");
	struct maker m;

	make_crash(&m, &boot);
	export_whole(&e, m.fd);
	assert_true(e.result.warning_count > 0);
	assert_string_equal(e.result.warnings[0],
			    "2 modules of the crashed boot are not loaded now, so their functions "
			    "have no names: gone, more. Load them with modprobe and extract again");
	maker_deinit(&m);
}

/* The kernel lists a module that came again once for each place. */
static void modules_of_two_places_are_counted_once(void **state _unused_)
{
	_cleanup_exported_ struct exported e = { .options = { .format = "txt" } };
	Traced__Capture__LastBoot boot = message_of(
		"ffffffff81000000\t[kernel]\nffffffffc0200000\tgone\nffffffffc0002000\tdummy\n"
		"ffffffffc0700000\tdummy\nffffffffc0800000\tgone\n");
	struct last_boot b;
	struct maker m;

	make_crash(&m, &boot);
	export_whole(&e, m.fd);
	assert_true(e.result.warning_count > 0);
	assert_string_equal(e.result.warnings[0],
			    "1 module of the crashed boot is not loaded now, so its functions "
			    "have no names: gone. Load it with modprobe and extract again");
	maker_deinit(&m);
	assert_int_equal(last_boot_read(&b, &boot), 0);
	assert_int_equal(b.module_count, 1);
	assert_int_equal(b.gone_count, 1);
	last_boot_deinit(&b);
}

static void many_names_are_cut(void **state _unused_)
{
	_cleanup_exported_ struct exported e = { .options = { .format = "txt" } };
	_cleanup_buf_ struct buf info = BUF_INIT;
	Traced__Capture__LastBoot message;
	struct maker m;

	buf_puts(&info, "ffffffff81000000\t[kernel]\n");
	for (unsigned i = 0; i < 10000; i++)
		buf_printf(&info, "ffffffffc%07x\tgone_%u\n", i * 4096, i);
	assert_non_null(buf_string(&info));
	message = message_of(info.data);
	make_crash(&m, &message);
	export_whole(&e, m.fd);
	assert_true(e.result.warning_count > 0);
	assert_ptr_equal(strstr(e.result.warnings[0], "4096 modules of the crashed boot are not "),
			 e.result.warnings[0]);
	assert_true(strlen(e.result.warnings[0]) > 300 && strlen(e.result.warnings[0]) < 400);
	assert_non_null(strstr(e.result.warnings[0], ", .... Load them with modprobe"));
	maker_deinit(&m);
}

/* A crash tears a sub-buffer whose memory was not all written. */
enum tear { TEAR_NOTHING, TEAR_LENGTH, TEAR_HOLE, TEAR_COMMIT, TEAR_KINDS };

static void tear_page(struct maker *m, enum tear tear, size_t at)
{
	char *page = m->subbufs.data + m->subbuf_size;

	if (tear == TEAR_COMMIT)
		memset(page + 8, 0xff, 4);
	else if (tear == TEAR_HOLE)
		memset(page + at, 0, 64);
	else if (tear == TEAR_LENGTH)
		page[at] |= 0x1c;
}

/* Three sub-buffers, each with two events. */
static void make_torn(struct maker *m, enum tear tear, const Traced__Capture__LastBoot *boot)
{
	const struct maker_stats start = { .entries = 6 }, end = { .read = 6 };
	size_t torn = 0;

	maker_init(m, 8, false, 4096);
	m->clock = "local";
	maker_head(m);
	assert_int_equal(stream_write_message(&m->writer, CHUNK_LAST_BOOT, &boot->base), 0);
	maker_stats(m, 0, &start, 1);
	for (uint32_t i = 1; i < 7; i += 2) {
		page_begin(m, i * NSEC_PER_SEC);
		event_number(m, i * NSEC_PER_SEC, 7, i);
		torn = m->page.len;
		event_number(m, i * NSEC_PER_SEC, 7, i + 1);
		page_end(m, 0);
	}
	tear_page(m, tear, torn);
	maker_flush(m, 0, BUFFER_MAIN, 0);
	maker_stats(m, 1, &end, 1);
	maker_end(m);
}

static bool has_value(const struct exported *e, unsigned value)
{
	char text[32];

	snprintf(text, sizeof(text), "number: value=%u\n", value);
	return strstr(e->file.data, text);
}

/* It costs itself, what is missing has its place, and the counts say how much. */
static void a_torn_subbuffer_costs_itself(void **state _unused_)
{
	Traced__Capture__LastBoot boot = message_of("text delta:\t0\n");

	for (enum tear tear = 0; tear < TEAR_KINDS; tear++) {
		_cleanup_exported_ struct exported e = { .options = { .format = "txt" } };
		const unsigned missing = tear == TEAR_COMMIT ? 2 : tear != TEAR_NOTHING;
		struct maker m;

		make_torn(&m, tear, &boot);
		export_whole(&e, m.fd);
		for (unsigned i = 1; i <= 6; i++)
			assert_int_equal(has_value(&e, i), i + missing < 5 || i > 4);
		assert_int_equal(!strstr(e.file.data, "CPU:0 [LOST EVENTS]"), !missing);
		assert_int_equal(e.result.events, 6 - missing);
		assert_int_equal(e.result.lost, missing);
		maker_deinit(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_of_then),
		cmocka_unit_test(places_that_make_no_sense),
		cmocka_unit_test(strings_of_then),
		cmocka_unit_test(hostile_texts),
		cmocka_unit_test(lines_of_the_log),
		cmocka_unit_test(a_crash_in_the_output),
		cmocka_unit_test(an_unknown_place_is_told),
		cmocka_unit_test(modules_that_are_gone_are_named),
		cmocka_unit_test(modules_of_two_places_are_counted_once),
		cmocka_unit_test(many_names_are_cut),
		cmocka_unit_test(a_torn_subbuffer_costs_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
