/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Refusals of samples, with a kernel whose perf_event_open is chosen here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/capture/rings/sampler.h"

static int refusal;

long __wrap_syscall(long number, ...);

long __wrap_syscall(long number _unused_, ...)
{
	errno = refusal;
	return -1;
}

static void refusals_name_their_remedy(void **state _unused_)
{
	static const struct {
		int error, code;
		const char *hint;
	} table[] = {
		{ ENOSYS, -EOPNOTSUPP, "boot a kernel with CONFIG_PERF_EVENTS" },
		{ ENOENT, -EOPNOTSUPP, "virtual machines" },
		{ EACCES, -EACCES, "CAP_PERFMON" },
	};
	const struct sampling what = { .hz = 99 };

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		struct sampler s;

		refusal = table[i].error;
		assert_int_equal(sampler_open(&s, &what, "mono", 1, NULL, &err), table[i].code);
		assert_non_null(strstr(err.hint, table[i].hint));
		sampler_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals_name_their_remedy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
