/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Our check of filters beside libtracefs's. Both must give the same verdict, but for filters that
 * only one of them judges as the kernel does: docs/architecture.md, Decisions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <event-parse.h>
#include <tracefs.h>

#include "base/cleanup.h"
#include "daemon/capture/plan/user_filter.h"

static const char format[] =
	"name: sched_switch\nID: 300\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	"\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
	"\tfield:__data_loc char[] name;\toffset:32;\tsize:4;\tsigned:1;\n\n"
	"print fmt: \"%s %d %d %s\", REC->prev_comm, REC->prev_pid, REC->prev_prio, "
	"__get_str(name)\n";

struct verdict {
	const char *filter;
	bool good;
};

static const struct verdict equal[] = {
	{ "prev_pid == 1", true },
	{ "prev_pid==1&&prev_prio<100", true },
	{ "  prev_pid  >=  10 ||  prev_prio  !=  120  ", true },
	{ "(prev_pid == 1 || prev_pid == 2) && prev_prio < 100", true },
	{ "!(prev_pid == 1)", true },
	{ "((prev_pid == 1))", true },
	{ "prev_pid & 4", true },
	{ "prev_comm == \"bash\"", true },
	{ "prev_comm ~ \"ba*\" && prev_pid > 1", true },
	{ "prev_comm != 'it is'", true },
	{ "name ~ \"*x*\"", true },
	{ "common_pid == 7 && common_preempt_count == 0", true },
	{ "", false },
	{ "prev_pid", false },
	{ "prev_pid ==", false },
	{ "== 1", false },
	{ "prev_pid = 1", false },
	{ "prev_pid === 1", false },
	{ "prev_pid == 1 &&", false },
	{ "prev_pid == 1 || || prev_prio == 2", false },
	{ "prev_pid == 1 & prev_prio == 2", false },
	{ "prev_pid == 1 prev_prio == 2", false },
	{ "(prev_pid == 1", false },
	{ "prev_pid == 1)", false },
	{ "prev_pid == 1 | prev_prio == 2", false },
	{ "prev_pidd == 1", false },
	{ "prev_pid == prev_prio", false },
	{ "()", false },
	{ "&& prev_pid == 1", false },
	{ "!", false },
};

/* The kernel takes these, and so do we. */
static const char *const only_ours[] = {
	"prev_pid == 0xff",	     /* hexadecimal */
	"prev_pid == -1",	     /* negative */
	"CPU == 1 && prev_pid == 1", /* of any event */
	"prev_pid & CPUS{0-3}",	     /* sets, Linux 6.6 */
};

static bool ours(const char *filter)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int r = user_filter_check("sched:sched_switch", format, filter, &err);

	/* Each refusal shows the place. */
	if (r < 0 && !strchr(err.message, '^'))
		fail_msg("'%s': no caret in: %s", filter, err.message);
	return r == 0;
}

static bool by_libtracefs(struct tep_event *event, const char *filter)
{
	char *why = NULL;
	bool good = tracefs_event_verify_filter(event, filter, &why) == 0;

	free(why);
	return good;
}

static void verdicts_are_equal(void **state)
{
	struct tep_event *event = *state;

	for (size_t i = 0; i < ARRAY_SIZE(equal); i++) {
		const struct verdict *v = &equal[i];

		if (ours(v->filter) != v->good)
			fail_msg("ours: '%s' is not %s", v->filter, v->good ? "good" : "bad");
		if (by_libtracefs(event, v->filter) != v->good)
			fail_msg("libtracefs: '%s' is not %s", v->filter, v->good ? "good" : "bad");
	}
}

/* A later libtracefs may know some. */
static void what_libtracefs_refuses_is_good(void **state)
{
	struct tep_event *event = *state;

	for (size_t i = 0; i < ARRAY_SIZE(only_ours); i++) {
		assert_true(ours(only_ours[i]));
		print_message("libtracefs %s: %s\n",
			      by_libtracefs(event, only_ours[i]) ? "takes" : "refuses",
			      only_ours[i]);
	}
}

static struct tep_handle *handle;

static int setup(void **state)
{
	handle = tep_alloc();
	if (!handle)
		return -1;
	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_long_size(handle, sizeof(long));
	if (tep_parse_event(handle, format, strlen(format), "sched") != 0)
		return -1;
	*state = tep_find_event_by_name(handle, "sched", "sched_switch");
	return *state ? 0 : -1;
}

static int teardown(void **state _unused_)
{
	tep_free(handle);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts_are_equal),
		cmocka_unit_test(what_libtracefs_refuses_is_good),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
