/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers of tasks and CPUs of several machines, and a machine's part of a JSON with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/vec.h"
#include "exported.h"
#include "make_formats.h"
#include "trace/host_numbers.h"

#define T0 (100 * NSEC_PER_SEC)

static void cpus_have_ranges(void **state _unused_)
{
	static const struct {
		uint32_t cpus[4], first[4];
	} cases[] = {
		{ { 4, 2, 8, 1 }, { 0, 10, 20, 30 } },
		{ { 10, 10, 0, 10 }, { 0, 10, 20, 20 } },
		{ { 11, 2, 4, 4 }, { 0, 100, 200, 300 } },
		{ { 1000, 2, 4, 240 }, { 0, 1000, 2000, 3000 } },
		/* Too many for tens. */
		{ { 1001, 2, 4, 240 }, { 0, 1001, 1003, 1007 } },
		{ { 4000, 94, 1, 1 }, { 0, 4000, 4094, 4095 } },
	};
	struct host_numbers n[4];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(n); k++)
			n[k] = (struct host_numbers){ .cpus = cases[i].cpus[k] };
		assert_int_equal(host_numbers_place(n, ARRAY_SIZE(n)), 0);
		for (size_t k = 0; k < ARRAY_SIZE(n); k++)
			assert_int_equal(n[k].first_cpu, cases[i].first[k]);
	}
	n[3].cpus = 2;
	assert_int_equal(host_numbers_place(n, ARRAY_SIZE(n)), -EOVERFLOW);
	n[0].cpus = UINT32_MAX;
	assert_int_equal(host_numbers_place(n, 1), -EOVERFLOW);
}

static void numbers_stay_in_their_range(void **state _unused_)
{
	static const int32_t pids[] = { 0, 1, 4194304, 9999999, 10000000, INT32_MAX };
	const struct host_numbers n = { .number = 63, .cpus = 4, .first_cpu = 630 };

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		assert_in_range(host_pid(&n, pids[i]), 640000000, 649999999);
	assert_int_equal(host_pid(&n, 1234), 640001234);
	assert_int_equal(host_task(&n, 0), 0);
	assert_true(host_pid(&n, -1) == -1);
	assert_int_equal(host_pid(NULL, 1234), 1234);
	assert_int_equal(host_cpu(&n, 3), 633);
	assert_int_equal(host_cpu(&n, UINT32_MAX), UINT32_MAX);
	assert_int_equal(host_cpu(NULL, 3), 3);
}

/* Events of each kind of machine: their records have two byte orders. */
static void fields_are_moved(void **state _unused_)
{
	const struct host_numbers numbers = { "pump", 1, 2, 10 };

	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		_cleanup_exported_ struct exported e = {
			.options = { .format = "json", .threads = 1, .numbers = &numbers }
		};
		struct maker m;

		maker_init(&m, machines[i].word_size, machines[i].big_endian, 4096);
		maker_head(&m);
		page_begin(&m, T0);
		event_switch(&m, T0, 7, "a", 1, 120, 0, "swapper/1");
		event_print_mark(&m, T0 + 1000, 7, "B|7|slice");
		event_print_mark(&m, T0 + 2000, 7, "E|7");
		event_print_mark(&m, T0 + 3000, 7, "trace_event_clock_sync: name=x");
		event_print_mark(&m, T0 + 4000, 7, "I|10000007|now");
		event_number(&m, T0 + 5000, 7, 10);
		page_flush(&m, 3, 1);
		maker_end(&m);
		export_whole(&e, m.fd);
		assert_non_null(strstr(e.file.data, "000000174876e800"));
		assert_non_null(strstr(e.file.data, "pump:a-20000007 [011] d..2."));
		assert_non_null(strstr(e.file.data, " prev_pid=20000007 "));
		assert_non_null(strstr(e.file.data, " next_pid=0 "));
		assert_non_null(strstr(e.file.data, "B|20000007|slice\\n"));
		assert_non_null(strstr(e.file.data, "E|20000007\\n"));
		assert_null(strstr(e.file.data, "clock_sync"));
		/* A machine can't name another one's tasks. */
		assert_non_null(strstr(e.file.data, "\"pid\":20000007,\"tid\":20000007"));
		assert_non_null(strstr(e.file.data, "CPU:11 [LOST 3 EVENTS]"));
		assert_non_null(strstr(e.file.data, "\"name\":\"pump: a\""));
		assert_non_null(strstr(e.file.data, "\"labels\":\"pid 7\""));
		maker_deinit(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpus_have_ranges),
		cmocka_unit_test(numbers_stay_in_their_range),
		cmocka_unit_test(fields_are_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
