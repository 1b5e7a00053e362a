/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of system calls of each machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "trace/syscall_name.h"

/* write(2) has another number on most machines. */
static void each_machine_has_its_numbers(void **state _unused_)
{
	static const struct {
		const char *machine;
		uint64_t nr;
	} machines[] = { { "x86_64", 1 },   { "i686", 4 },  { "aarch64", 64 }, { "armv7l", 4 },
			 { "riscv64", 64 }, { "s390x", 4 }, { "ppc64le", 4 } };

	if (!HAVE_SECCOMP)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		const uint32_t table = syscall_table(machines[i].machine);
		char *name = syscall_name(table, machines[i].nr), *none;

		assert_true(table);
		assert_non_null(name);
		assert_string_equal(name, "write");
		none = syscall_name(table, 100000);
		assert_null(none);
		free(name);
	}
}

static void other_machines_have_no_names(void **state _unused_)
{
	assert_int_equal(syscall_table("i"), 0);
	assert_int_equal(syscall_table(""), 0);
	assert_int_equal(syscall_table("pdp11"), 0);
	assert_null(syscall_name(0, 1));
	assert_null(syscall_name(syscall_table("x86_64"), UINT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_machine_has_its_numbers),
		cmocka_unit_test(other_machines_have_no_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
