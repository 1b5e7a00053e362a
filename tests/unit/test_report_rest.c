/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports with more rows than there may be: those that come later share one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "export/export.h"
#include "make_stream.h"
#include "memory_file.h"
#include "report/report.h"
#include "report/rows.h"

/* The bound of each set of rows. */
#define ROWS 3
#define KEYS 6
#define FIRST_TS (UINT64_C(50) * 1000000000)

enum { ID_IRQ_ENTRY = 400, ID_IRQ_EXIT, ID_BLOCK_ISSUE, ID_BLOCK_COMPLETE };

void __real_rows_init(struct rows *r, size_t size, void (*deinit)(void *row));
void __wrap_rows_init(struct rows *r, size_t size, void (*deinit)(void *row));

void __wrap_rows_init(struct rows *r, size_t size, void (*deinit)(void *row))
{
	__real_rows_init(r, size, deinit);
	r->max = ROWS;
}

static const char irq_fields[] = "\tfield:u64 irq;\toffset:8;\tsize:8;\tsigned:0;\n";
static const char block_fields[] = "\tfield:u64 dev;\toffset:8;\tsize:8;\tsigned:0;\n"
				   "\tfield:u64 sector;\toffset:16;\tsize:8;\tsigned:0;\n"
				   "\tfield:u64 bytes;\toffset:24;\tsize:8;\tsigned:0;\n"
				   "\tfield:u64 error;\toffset:32;\tsize:8;\tsigned:0;\n"
				   "\tfield:char rwbs[8];\toffset:40;\tsize:8;\tsigned:0;\n";

/* Interrupt or operation n takes n + 1 ns; none is within another, and each is of a sector of its
 * own. */
static void make_recording(struct maker *m, uint16_t begin, uint16_t end, const char *system,
			   const char *const names[2], const char *fields)
{
	uint64_t ts = FIRST_TS;

	maker_begin(m, 4096);
	maker_format(m, system, names[0], begin, fields, "\"\"");
	maker_format(m, system, names[1], end, fields, "\"\"");
	page_begin(m, ts);
	for (uint64_t key = 0; key < KEYS; key++) {
		const struct {
			uint64_t irq_or_dev, sector, bytes, error;
			char operation[8];
		} data = { begin == ID_IRQ_ENTRY ? key : 0, key, 100, 0, { (char)('A' + key) } };

		maker_event(m, ts, begin, 1, &data, sizeof(data));
		ts += key + 1;
		maker_event(m, ts, end, 1, &data, sizeof(data));
		ts += 100;
	}
	maker_finish(m);
}

static void assert_report(int fd, const char *name, const char *expected)
{
	const struct report_options o = {
		.names = &name, .count = 1, .form = REPORT_CSV, .sort = "max-at"
	};
	const struct export_options options = { .format = "report", .report = &o };
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_close_ int out = memory_file("", 0);
	_cleanup_buf_ struct buf file = BUF_INIT;

	if (export_run(&report_sink_ops, fd, out, &options, &result, &err) < 0)
		fail_msg("%s", err.message);
	memory_file_read(out, &file);
	assert_string_equal(strchr(file.data, '\n') + 1, expected);
}

static void interrupts(void **state _unused_)
{
	static const char *const names[] = { "irq_handler_entry", "irq_handler_exit" };
	_cleanup_(maker_deinit) struct maker m;

	make_recording(&m, ID_IRQ_ENTRY, ID_IRQ_EXIT, "irq", names, irq_fields);
	assert_report(m.fd, "irq",
		      "\"(others)\",\"\",3,15,5,5,6,6,50000000521,,,,,0,0\r\n"
		      "\"2 \",\"irq\",1,3,3,3,3,3,50000000206,,,,,0,0\r\n"
		      "\"1 \",\"irq\",1,2,2,2,2,2,50000000103,,,,,0,0\r\n"
		      "\"0 \",\"irq\",1,1,1,1,1,1,50000000001,,,,,0,0\r\n");
}

static void requests(void **state _unused_)
{
	static const char *const names[] = { "block_rq_issue", "block_rq_complete" };
	_cleanup_(maker_deinit) struct maker m;

	make_recording(&m, ID_BLOCK_ISSUE, ID_BLOCK_COMPLETE, "block", names, block_fields);
	assert_report(m.fd, "block",
		      "\"(others)\",\"\",3,300,0,,,,,5,5,6,6,50000000521,0,0\r\n"
		      "\"0,0\",\"C\",1,100,0,,,,,3,3,3,3,50000000206,0,0\r\n"
		      "\"0,0\",\"B\",1,100,0,,,,,2,2,2,2,50000000103,0,0\r\n"
		      "\"0,0\",\"A\",1,100,0,,,,,1,1,1,1,50000000001,0,0\r\n");
}

/* Requests that are under way at once: what is beyond the bound is not measured, and counted. */
static void requests_at_once(void **state _unused_)
{
	_cleanup_(maker_deinit) struct maker m;

	maker_begin(&m, 4096);
	maker_format(&m, "block", "block_rq_issue", ID_BLOCK_ISSUE, block_fields, "\"\"");
	maker_format(&m, "block", "block_rq_complete", ID_BLOCK_COMPLETE, block_fields, "\"\"");
	page_begin(&m, FIRST_TS);
	for (uint64_t i = 0; i < 2 * KEYS; i++) {
		const struct {
			uint64_t dev, sector, bytes, error;
			char operation[8];
		} data = { 0, i % KEYS, 100, 0, "R" };

		maker_event(&m, FIRST_TS + i, i < KEYS ? ID_BLOCK_ISSUE : ID_BLOCK_COMPLETE, 1,
			    &data, sizeof(data));
	}
	maker_finish(&m);
	assert_report(m.fd, "block", "\"0,0\",\"R\",3,300,0,,,,,6,6,6,6,50000000006,3,0\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interrupts),
		cmocka_unit_test(requests),
		cmocka_unit_test(requests_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
