/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* atrace's texts in trace_marker, as they appear in the JSON. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/io.h"
#include "converted.h"
#include "make_stream.h"

#define S NSEC_PER_SEC

static json_t *convert_marks(const char *const *marks, size_t count, bool array)
{
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted c;

	maker_begin(&m, 4096);
	page_begin(&m, 100 * S);
	for (size_t i = 0; i < count; i++)
		event_print_mark(&m, 100 * S + i * 1000500, 7, marks[i]);
	maker_finish(&m);
	convert(&c, m.fd, &(struct export_options){ .json_array = array });
	assert_int_equal(c.out.result.events, count);
	return json_incref(c.json);
}

/* The n-th element that is no metadata, as text. */
static void expect(json_t *events, size_t n, const char *wanted)
{
	_cleanup_free_ char *text = NULL;
	json_t *e;
	size_t i;

	json_array_foreach(events, i, e)
	{
		if (strcmp(json_string_value(json_object_get(e, "ph")), "M") == 0 || n--)
			continue;
		text = json_dumps(e, JSON_COMPACT | JSON_SORT_KEYS);
		break;
	}
	if (!text || !wanted || strcmp(text, wanted) != 0)
		fail_msg("%s, not %s", text ?: "nothing", wanted);
}

static size_t count_of(json_t *events)
{
	size_t i, n = 0;
	json_t *e;

	json_array_foreach(events, i, e) n +=
		strcmp(json_string_value(json_object_get(e, "ph")), "M") != 0;
	return n;
}

static const char *const marks[] = {
	"B|70|slice",	      "I|70|instant \"x\"",	"N|70|track|on it\n",
	"G|70|track|work|12", "G|70|track|other|13",	"E|70",
	"H|70|track|12",      "H|70|track|whatever|13",
};

static void each_is_what_it_is(void **state _unused_)
{
	json_t *json = convert_marks(marks, ARRAY_SIZE(marks), false);
	json_t *events = json_object_get(json, "traceEvents");
	const char *text = json_string_value(json_object_get(json, "systemTraceEvents"));

	assert_int_equal(count_of(events), 6);
	expect(events, 0,
	       "{\"cat\":\"atrace\",\"name\":\"instant \\\"x\\\"\",\"ph\":\"i\",\"pid\":70,"
	       "\"s\":\"t\",\"tid\":7,\"ts\":100001000.5}");
	expect(events, 1,
	       "{\"args\":{\"track\":\"track\"},\"cat\":\"atrace\",\"name\":\"on it\",\"ph\":\"i\","
	       "\"pid\":70,\"s\":\"p\",\"tid\":7,\"ts\":100002001.0}");
	expect(events, 2,
	       "{\"cat\":\"track\",\"id2\":{\"local\":\"12\"},\"name\":\"work\",\"ph\":\"b\","
	       "\"pid\":70,\"tid\":7,\"ts\":100003001.5}");
	expect(events, 4,
	       "{\"cat\":\"track\",\"id2\":{\"local\":\"12\"},\"name\":\"work\",\"ph\":\"e\","
	       "\"pid\":70,\"tid\":7,\"ts\":100006003.0}");
	expect(events, 5,
	       "{\"cat\":\"track\",\"id2\":{\"local\":\"13\"},\"name\":\"other\",\"ph\":\"e\","
	       "\"pid\":70,\"tid\":7,\"ts\":100007003.5}");
	assert_non_null(strstr(text, "B|70|slice\n"));
	assert_non_null(strstr(text, "E|70\n"));
	assert_null(strstr(text, "instant"));
	assert_null(strstr(text, "track"));
	json_decref(json);
}

/* `tracectl mark` of the process 70: the daemon, 7, writes it. */
static void an_instant_may_be_of_another_process(void **state _unused_)
{
	static const struct maker_task daemon = { .tid = 7, .tgid = 7, .comm = "traced" };
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted c;

	maker_begin(&m, 4096);
	maker_tasks(&m, 100 * S, 0, &daemon, 1);
	page_begin(&m, 100 * S);
	event_print_mark(&m, 100 * S + 1000, 7, "N|70|marks|a|b");
	maker_finish(&m);
	convert(&c, m.fd, &(struct export_options){ 0 });
	expect(json_object_get(c.json, "traceEvents"), 0,
	       "{\"args\":{\"track\":\"marks\"},\"cat\":\"atrace\",\"name\":\"a|b\",\"ph\":\"i\","
	       "\"pid\":70,\"s\":\"p\",\"tid\":70,\"ts\":100000001.0}");
}

static void an_array_has_them_too(void **state _unused_)
{
	json_t *json = convert_marks(marks, ARRAY_SIZE(marks), true);

	assert_int_equal(count_of(json), 6);
	json_decref(json);
}

/* Text that resembles one of them, or an end without a begin, is free text. */
static void other_texts_stay_in_the_text(void **state _unused_)
{
	static const char *const others[] = {
		"I|x|name",	"I|70",	      "I|70|",		 "I",
		"N|70|track",	"N|70||name", "G|70|track|name", "G|70|t|name|1x",
		"H|70|track|9", "",	      "I|-5|name",
	};
	json_t *json = convert_marks(others, ARRAY_SIZE(others), false);
	const char *text = json_string_value(json_object_get(json, "systemTraceEvents"));

	assert_int_equal(count_of(json_object_get(json, "traceEvents")), 0);
	assert_non_null(strstr(text, "B|7|I/x/name\n"));
	assert_non_null(strstr(text, "B|7|H/70/track/9\n"));
	json_decref(json);
}

/* Readers take an end whatever follows it, and a slice without a name. */
static void odd_slices_stay_slices(void **state _unused_)
{
	static const char *const odd[] = { "B|70|", "E|", "B|70|x", "E|x", "B|70" };
	json_t *json = convert_marks(odd, ARRAY_SIZE(odd), false);
	const char *text = json_string_value(json_object_get(json, "systemTraceEvents"));

	assert_non_null(strstr(text, ": B|70|\n"));
	assert_non_null(strstr(text, ": E|\n"));
	assert_non_null(strstr(text, ": E|x\n"));
	/* Trace Viewer would refuse the trace for a slice without that bar. */
	assert_non_null(strstr(text, ": B|7|B/70\n"));
	json_decref(json);
}

/* Many at once: an end has the name of its begin, even if hashes collide. */
static void ends_find_their_names(void **state _unused_)
{
	enum { MANY = 20 };
	static char texts[2 * MANY][40];
	const char *all[2 * MANY];
	json_t *json, *events, *e;
	size_t i, ends = 0;

	for (int k = 0; k < MANY; k++) {
		snprintf(texts[k], sizeof(texts[k]), "G|70|t|name%d|%d", k, k);
		snprintf(texts[MANY + k], sizeof(texts[k]), "H|70|t|%d", k * 7 % MANY);
		all[k] = texts[k];
		all[MANY + k] = texts[MANY + k];
	}
	json = convert_marks(all, 2 * MANY, false);
	events = json_object_get(json, "traceEvents");
	json_array_foreach(events, i, e)
	{
		const char *id =
			json_string_value(json_object_get(json_object_get(e, "id2"), "local"));
		char name[16];

		if (strcmp(json_string_value(json_object_get(e, "ph")), "e") != 0)
			continue;
		snprintf(name, sizeof(name), "name%s", id);
		assert_string_equal(json_string_value(json_object_get(e, "name")), name);
		ends++;
	}
	assert_int_equal(ends, MANY);
	json_decref(json);
}

#define PAGES 400
#define PAGE_MARKS 40
#define NAMED 16 /* tasks */
/* A thread caches one task at this distance; it looks up the others each time. */
#define NAMED_STEP 1024

/*
 * One thread writes lines of the text while the next fetches an instant of a task that was never
 * looked up: the exporter then searches for its name.
 */
static void a_task_without_a_name_may_come_at_any_time(void **state _unused_)
{
	static struct maker_task tasks[NAMED];
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_converted_ struct converted c;

	maker_begin(&m, 4096);
	for (int i = 0; i < NAMED; i++)
		tasks[i] = (struct maker_task){ .tid = 1 + i * NAMED_STEP,
						.tgid = 1,
						.comm = "named" };
	maker_tasks(&m, 100 * S, 0, tasks, NAMED);
	for (uint64_t i = 0; i < PAGES; i++) {
		page_begin(&m, (100 + i) * S);
		for (uint64_t k = 0; k < PAGE_MARKS; k++)
			event_print_mark(&m, (100 + i) * S + k * 1000,
					 (int)(1 + (i * PAGE_MARKS + k) % NAMED * NAMED_STEP),
					 "B|70|slice");
		if (i > PAGES / 2)
			event_print_mark(&m, (100 + i) * S + PAGE_MARKS * 1000, (int)(10000 + i),
					 "I|70|instant");
		page_end(&m, 0);
	}
	maker_flush(&m, 0, BUFFER_MAIN, 0);
	maker_end(&m);
	convert(&c, m.fd, &(struct export_options){ .threads = 2 });
	assert_int_equal(count_of(json_object_get(c.json, "traceEvents")), PAGES / 2 - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_what_it_is),
		cmocka_unit_test(a_task_without_a_name_may_come_at_any_time),
		cmocka_unit_test(an_instant_may_be_of_another_process),
		cmocka_unit_test(an_array_has_them_too),
		cmocka_unit_test(other_texts_stay_in_the_text),
		cmocka_unit_test(odd_slices_stay_slices),
		cmocka_unit_test(ends_find_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
