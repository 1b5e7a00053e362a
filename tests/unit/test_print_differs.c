/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every event of every kernel in tests/data, printed by our programs and by libtraceevent. If they
 * differ, one of them is wrong; the table below lists the errors of libtraceevent. The kernel's own
 * text is right by definition; tests/integration/oracle_text.c compares with it, for the events of
 * one machine.
 */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "by_library.h"
#include "fixture.h"

/* How extreme records may be before libtraceevent prints something wrong. */
#define AGREES_NEVER (-1)
#define CRASHES (-2) /* it is never called */

struct fault {
	const char *events;    /* a pattern of "system:name" */
	const char *print_fmt; /* NULL, or a part of the print fmt of the affected events */
	int agrees_until;      /* enum wildness */
	const char *why;
	unsigned seen; /* number of differences */
};

#include "print_faults.h"
#include "random_series.h"

/* It also leaks some memory. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libtraceevent";
}

static uint64_t random_state;

static uint64_t random_u64(void *userdata _unused_)
{
	return random_next(&random_state);
}

struct both {
	struct event_table *ours;
	struct by_library *library;
	struct constants constants;
};

static void add_format(void *userdata, const char *system, const char *text, size_t len)
{
	struct both *b = userdata;

	assert_int_equal(event_table_add(b->ours, system, text, len, NULL), 0);
	by_library_add(b->library, system, text, len, &b->constants);
}

static void both_init(struct both *b, const char *kernel)
{
	const struct event_table_env env = { .word_size = 8, .pointers = POINTER_RAW };
	_cleanup_buf_ struct buf constants = BUF_INIT;

	*b = (struct both){ 0 };
	/* One kernel's constants serve for all, because both programs use the same ones. */
	fixture_read_gz(TEST_DATA "/6.18.44/constants.txt", &constants);
	assert_int_equal(constants_add_text(&b->constants, constants.data, constants.len), 0);
	assert_int_equal(event_table_new(&b->ours, &env), 0);
	assert_int_equal(by_library_new(&b->library), 0);
	assert_int_equal(event_table_add_enums(b->ours, constants.data, constants.len), 0);
	fixture_each_format(kernel, add_format, b);
	assert_int_equal(event_table_seal(b->ours, NULL), 0);
}

static void both_deinit(struct both *b)
{
	event_table_free(b->ours);
	by_library_free(b->library);
	constants_deinit(&b->constants);
}

static struct fault *find_fault(const struct event *ev)
{
	char name[160];
	size_t len;
	const char *text = event_format_text(ev, &len);

	snprintf(name, sizeof(name), "%s:%s", ev->system, ev->name);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct fault *f = &faults[i];

		if (fnmatch(f->events, name, 0) == 0 &&
		    (!f->print_fmt || memmem(text, len, f->print_fmt, strlen(f->print_fmt))))
			return f;
	}
	return NULL;
}

struct tally {
	unsigned compared, excused, unparsed, differing;
};

static void compare(struct both *b, const char *kernel, struct printer *p, const struct event *ev,
		    struct tally *tally)
{
	static uint8_t data[RECORD_MAX];
	_cleanup_buf_ struct buf ours = BUF_INIT, theirs = BUF_INIT;
	struct fault *fault = find_fault(ev);

	for (int round = 0; round < 2 * WILD_KINDS; round++) {
		enum wildness wild = (enum wildness)(round % WILD_KINDS);
		bool excused = fault && (int)wild > fault->agrees_until;
		struct record rec = { .data = data };

		if (fault && fault->agrees_until == CRASHES)
			break;
		rec.len = make_record(ev, wild, random_u64, NULL, data);
		buf_clear(&ours);
		buf_clear(&theirs);
		event_print(p, ev, &rec, &ours);
		if (!by_library_print(b->library, ev->id, &rec, &theirs)) {
			tally->unparsed++;
			return;
		}
		assert_non_null(buf_string(&ours));
		assert_non_null(buf_string(&theirs));
		without_signs(&ours);
		without_signs(&theirs);
		assert_true(strlen(ours.data) > strlen(ev->name) + 1);
		if (strcmp(ours.data + strlen(ev->name) + 2, theirs.data) == 0)
			continue;
		if (excused) {
			fault->seen++;
			continue;
		}
		print_message("%s %s:%s, values %d\n%s\n%*s%s\n", kernel, ev->system, ev->name,
			      (int)wild, ours.data, (int)strlen(ev->name) + 2, "", theirs.data);
		tally->differing++;
		return;
	}
	if (fault)
		tally->excused++;
	else
		tally->compared++;
}

/* libtraceevent does not mark what user space can't know; functions of the kernel print these. */
static bool is_comparable(const struct event *ev)
{
	return ev->program && !fixture_prints_unknown(ev) && strcmp(ev->system, "syscalls") != 0 &&
	       strcmp(ev->system, "ftrace") != 0;
}

static void compare_kernel(const char *kernel, unsigned least)
{
	const struct event *const *all;
	struct tally tally = { 0 };
	struct printer *p;
	struct both b;
	size_t count;

	random_state = RANDOM_FIRST;
	both_init(&b, kernel);
	assert_int_equal(printer_new(&p, b.ours), 0);
	all = event_table_all(b.ours, &count);
	for (size_t i = 0; i < count; i++)
		if (is_comparable(all[i]))
			compare(&b, kernel, p, all[i], &tally);
	printer_free(p);
	both_deinit(&b);
	print_message("%s: %u events agree, %u as far as the faults allow, %u can't be parsed\n",
		      kernel, tally.compared, tally.excused, tally.unparsed);
	assert_int_equal(tally.differing, 0);
	assert_true(tally.compared > least);
	assert_true(tally.unparsed < 60);
}

static void test_6_1(void **state)
{
	(void)state;
	compare_kernel("6.1.176", 1000);
}

static void test_6_12(void **state)
{
	(void)state;
	compare_kernel("6.12.107", 1000);
}

static void test_6_18(void **state)
{
	(void)state;
	compare_kernel("6.18.44", 1000);
}

static void test_7_2(void **state)
{
	(void)state;
	compare_kernel("7.2.13", 1000);
}

/* An obsolete fault (a newer libtraceevent, a change of ours) would hide real differences. */
static void test_faults_are_seen(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		if (faults[i].agrees_until != CRASHES && !faults[i].seen)
			fail_msg("nothing differs any more: %s, %s", faults[i].events,
				 faults[i].why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_6_1),
		cmocka_unit_test(test_6_12),
		cmocka_unit_test(test_6_18),
		cmocka_unit_test(test_7_2),
		cmocka_unit_test(test_faults_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
