/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Marks of merged files in the JSON: what its readers need, and what they would refuse. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/io.h"
#include "converted.h"
#include "formats/json/frames.h"
#include "make_stream.h"
#include "memory_file.h"

#define S UINT64_C(1000000000)

static void make_recording(struct maker *m)
{
	maker_begin(m, 1024);
	page_begin(m, 1 * S);
	event_number(m, 1 * S, 7, 1);
	event_number(m, 9 * S, 7, 2);
	maker_finish(m);
}

/* Merges the files, whose clock is the trace's. */
static void merge(struct converted *c, const char *const *texts, size_t count)
{
	static const char *const names[] = { "app.json", "app.2.json", "app.3.json", "app.4.json" };
	_cleanup_(maker_deinit) struct maker m;
	struct export_merge files[4];

	assert_true(count <= ARRAY_SIZE(files));
	for (size_t i = 0; i < count; i++)
		files[i] = (struct export_merge){
			.fd = memory_file(texts[i], strlen(texts[i])),
			.name = names[i],
			.clock = MERGE_CLOCK_TRACE,
		};
	make_recording(&m);
	convert(c, m.fd, &(struct export_options){ .merges = files, .merge_count = count });
	for (size_t i = 0; i < count; i++)
		close(files[i].fd);
}

static void merge_events(struct converted *c, const char *events)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	buf_puts(&text, "[");
	buf_puts(&text, events);
	buf_puts(&text, "]");
	merge(c, (const char *[]){ buf_string(&text) }, 1);
}

/* The n-th event of this phase and name. */
static json_t *event_of(const struct converted *c, const char *ph, const char *name, size_t n)
{
	json_t *e;
	size_t i;

	json_array_foreach(json_object_get(c->json, "traceEvents"), i, e)
	{
		if (strcmp(json_string_value(json_object_get(e, "ph")), ph) != 0 ||
		    strcmp(json_string_value(json_object_get(e, "name")), name) != 0 || n--)
			continue;
		return e;
	}
	return NULL;
}

static const char *string_of(const json_t *e, const char *key)
{
	return json_string_value(json_object_get(e, key));
}

static bool exported_warned(const struct exported *e, const char *text)
{
	for (size_t i = 0; i < e->result.warning_count; i++)
		if (strstr(e->result.warnings[i], text))
			return true;
	return false;
}

static bool warned(const struct converted *c, const char *text)
{
	return exported_warned(&c->out, text);
}

/* Name of the frame that a member names, and of its caller; NULL: none. */
static const char *frame_name(const struct converted *c, const char *id, const char **caller)
{
	json_t *frames = json_object_get(c->json, "stackFrames");
	json_t *frame = id ? json_object_get(frames, id) : NULL;
	const char *parent = string_of(frame, "parent");

	*caller = parent ? string_of(json_object_get(frames, parent), "name") : NULL;
	return string_of(frame, "name");
}

/* Ids that look like those of another file, or like ours for raw stacks, are other frames. */
static void frame_ids_never_meet(void **state _unused_)
{
	static const char *const files[] = {
		"{\"stackFrames\":{\"stack1\":{\"name\":\"mine\"},\"1:a\":{\"name\":\"first\"},"
		"\"no stack\":{\"name\":\"named so\"},"
		"\"+stack1\":{\"name\":\"plus\",\"parent\":\"stack1\"}},\"traceEvents\":["
		"{\"name\":\"1\",\"ph\":\"i\",\"ts\":2000000,\"pid\":1,\"sf\":\"stack1\"},"
		"{\"name\":\"2\",\"ph\":\"i\",\"ts\":2000000,\"pid\":1,\"stack\":[\"raw\"]},"
		"{\"name\":\"3\",\"ph\":\"i\",\"ts\":2000000,\"pid\":1,\"sf\":\"+stack1\"},"
		"{\"name\":\"4\",\"ph\":\"i\",\"ts\":2000000,\"pid\":1,\"sf\":\"1:a\"},"
		"{\"name\":\"5\",\"ph\":\"i\",\"ts\":2000000,\"pid\":1,\"sf\":\"no stack\"}]}",
		"{\"stackFrames\":{\"a\":{\"name\":\"second\"}},\"traceEvents\":["
		"{\"name\":\"6\",\"ph\":\"i\",\"ts\":2000000,\"pid\":1,\"sf\":\"a\"}],"
		"\"samples\":[{\"tid\":1,\"ts\":2000000,\"name\":\"x\",\"weight\":1}]}",
	};
	static const char *const names[] = { "mine", "raw", "plus", "first", "named so", "second" };
	_cleanup_converted_ struct converted c = { 0 };
	json_t *sample;
	const char *caller;

	merge(&c, files, 2);
	assert_int_equal(json_object_size(json_object_get(c.json, "stackFrames")), 7);
	for (int i = 0; i < 6; i++) {
		char name[2] = { (char)('1' + i), 0 };
		json_t *e = event_of(&c, "i", name, 0);

		assert_string_equal(frame_name(&c, string_of(e, "sf"), &caller), names[i]);
		if (i == 2)
			assert_string_equal(caller, "mine");
		else
			assert_null(caller);
	}
	sample = json_array_get(json_object_get(c.json, "samples"), 0);
	assert_string_equal(frame_name(&c, string_of(sample, "sf"), &caller), "no stack");
}

/* A mark loses an unknown frame, and a sample gets a common one; a warning counts both. */
static void unknown_frames_are_left_out(void **state _unused_)
{
	static const char *const files[] = {
		"{\"stackFrames\":{\"a\":{\"name\":\"a\",\"parent\":\"none\"},"
		"\"b\":{\"name\":\"b\",\"parent\":\"c\"},\"c\":{\"name\":\"c\",\"parent\":\"b\"},"
		"\"d\":{\"name\":\"d\",\"parent\":\"e\"},\"e\":{\"name\":\"e\"}},\"traceEvents\":["
		"{\"name\":\"1\",\"ph\":\"i\",\"ts\":2000000,\"pid\":1,\"sf\":\"z\"}],\"samples\":["
		"{\"tid\":1,\"ts\":2000000,\"name\":\"x\",\"sf\":\"z\",\"weight\":1},"
		"{\"tid\":1,\"ts\":2000000,\"name\":\"x\",\"weight\":1}]}",
	};
	_cleanup_converted_ struct converted c = { 0 };
	const char *caller;
	json_t *samples;

	merge(&c, files, 1);
	assert_null(json_object_get(event_of(&c, "i", "1", 0), "sf"));
	samples = json_object_get(c.json, "samples");
	for (int i = 0; i < 2; i++)
		assert_string_equal(
			frame_name(&c, string_of(json_array_get(samples, i), "sf"), &caller),
			"no stack");
	assert_true(warned(&c, "2 stacks of marks and samples are missing"));
	assert_string_equal(frame_name(&c, "0:a", &caller), "a");
	assert_null(caller);
	assert_string_equal(frame_name(&c, "0:b", &caller), "b");
	assert_string_equal(caller, "c");
	assert_string_equal(frame_name(&c, "0:c", &caller), "c");
	assert_null(caller);
	assert_string_equal(frame_name(&c, "0:d", &caller), "d");
	assert_string_equal(caller, "e");
	assert_true(warned(&c, "2 stacks are cut at a frame"));
}

/* Trace Viewer would refuse the whole trace. */
static void refused_marks_are_left_out(void **state _unused_)
{
	static const struct {
		const char *event, *why;
	} rows[] = {
		{ "\"process_labels\",\"ph\":\"M\",\"args\":{\"labels\":[\"x\"]}",
		  "process_labels" },
		{ "\"process_labels\",\"ph\":\"M\",\"args\":{\"label\":\"x\"}", "process_labels" },
		{ "\"thread_name\",\"ph\":\"M\",\"args\":{\"name\":5}", "thread_name" },
		{ "\"V8Sample\",\"ph\":\"P\"", "V8Sample" },
		{ "\"V8Sample\",\"ph\":\"P\",\"args\":{\"data\":{\"x\":1},\"stack\":[]}",
		  "V8Sample" },
		{ "\"d\",\"ph\":\"v\",\"args\":{\"dumps\":7}", "memory dump" },
		{ "\"process_labels\",\"ph\":\"M\",\"args\":{\"labels\":\"x\"}", NULL },
		{ "\"V8Sample\",\"ph\":\"P\",\"args\":{\"data\":{\"stack\":[]}}", NULL },
		{ "\"Other\",\"ph\":\"P\"", NULL },
		{ "\"d\",\"ph\":\"V\",\"id\":\"1\"", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_converted_ struct converted c = { 0 };
		char event[256], name[32], phase[2];
		json_t *e;

		assert_int_equal(
			sscanf(rows[i].event, "\"%31[^\"]\",\"ph\":\"%1[^\"]", name, phase), 2);
		snprintf(event, sizeof(event), "{\"ts\":2000000,\"pid\":1,\"name\":%s}",
			 rows[i].event);
		merge_events(&c, event);
		for (size_t n = 0; (e = event_of(&c, phase, name, n)); n++)
			if (json_integer_value(json_object_get(e, "pid")) == 1)
				break;
		if (!e != !!rows[i].why || warned(&c, "would refuse") != !!rows[i].why ||
		    (rows[i].why && !warned(&c, rows[i].why)))
			fail_msg("row %zu: %s", i, rows[i].event);
		assert_false(warned(&c, "have nothing that a viewer shows"));
		if (*phase == 'V')
			assert_true(json_is_object(
				json_object_get(json_object_get(e, "args"), "dumps")));
	}
}

static void snapshots_have_no_id(void **state _unused_)
{
	_cleanup_converted_ struct converted c = { 0 };
	json_t *snapshot, *list;

	merge_events(&c, "{\"name\":\"o\",\"ph\":\"O\",\"id\":1,\"ts\":2000000,\"pid\":1,\"args\":{"
			 "\"id\":1,\"snapshot\":{\"id\":\"a/b\",\"list\":[{\"id\":5},"
			 "{\"id\":\"name/0x1\",\"deep\":{\"id\":\"/x\"}}]}}}");
	snapshot = json_object_get(event_of(&c, "O", "o", 0), "args");
	assert_non_null(json_object_get(snapshot, "id"));
	snapshot = json_object_get(snapshot, "snapshot");
	assert_null(json_object_get(snapshot, "id"));
	assert_string_equal(string_of(snapshot, "id_"), "a/b");
	list = json_object_get(snapshot, "list");
	assert_number(json_array_get(list, 0), "id_", 5);
	assert_string_equal(string_of(json_array_get(list, 1), "id"), "name/0x1");
	assert_string_equal(string_of(json_object_get(json_array_get(list, 1), "deep"), "id_"),
			    "/x");
	assert_true(warned(&c, "3 members 'id' of snapshots"));
	converted_deinit(&c);
	/* Names that are in use make way: no member hides another one. */
	merge_events(&c, "{\"name\":\"o\",\"ph\":\"O\",\"id\":1,\"ts\":2000000,\"pid\":1,\"args\":{"
			 "\"snapshot\":{\"id_\":2,\"id\":1,\"id__\":3,\"id_x\":4}}}");
	snapshot = json_object_get(json_object_get(event_of(&c, "O", "o", 0), "args"), "snapshot");
	assert_number(snapshot, "id_", 1);
	assert_number(snapshot, "id__", 2);
	assert_number(snapshot, "id___", 3);
	assert_number(snapshot, "id_x", 4);
}

/* Linked ids are those of the marks that they link; readers know only plain ids of flows. */
static void ids_are_those_of_the_partners(void **state _unused_)
{
	_cleanup_converted_ struct converted c = { 0 };
	json_t *link;

	merge_events(
		&c,
		"{\"name\":\"r\",\"cat\":\"n\",\"ph\":\"b\",\"id\":\"first\",\"ts\":2000000,"
		"\"pid\":1},"
		"{\"name\":\"l\",\"cat\":\"n\",\"ph\":\"=\",\"id\":\"first\",\"ts\":2000001,"
		"\"pid\":1,"
		"\"args\":{\"linked_id\":\"second\",\"more\":[1]}},"
		"{\"name\":\"l\",\"cat\":\"n\",\"ph\":\"=\",\"id\":\"0x1\",\"ts\":2000001,\"pid\":"
		"1,"
		"\"args\":{\"linked_id\":31}},"
		"{\"name\":\"r\",\"cat\":\"n\",\"ph\":\"e\",\"id\":\"second\",\"ts\":2000002,"
		"\"pid\":1},"
		"{\"name\":\"f\",\"ph\":\"s\",\"id2\":{\"local\":\"0x5\"},\"ts\":2000003,\"pid\":1}"
		","
		"{\"name\":\"f\",\"ph\":\"f\",\"id2\":{\"local\":\"0x5\"},\"ts\":2000004,\"pid\":1}"
		","
		"{\"name\":\"f\",\"ph\":\"s\",\"id2\":{\"local\":\"0x5\"},\"ts\":2000003,\"pid\":2}"
		","
		"{\"name\":\"g\",\"ph\":\"s\",\"id2\":{\"global\":6},\"ts\":2000003,\"pid\":1}");
	link = event_of(&c, "=", "l", 0);
	assert_string_equal(string_of(link, "id"), string_of(event_of(&c, "b", "r", 0), "id"));
	assert_string_equal(string_of(json_object_get(link, "args"), "linked_id"),
			    string_of(event_of(&c, "e", "r", 0), "id"));
	assert_non_null(json_object_get(json_object_get(link, "args"), "more"));
	link = event_of(&c, "=", "l", 1);
	assert_string_equal(string_of(json_object_get(link, "args"), "linked_id"), "0x1f");
	assert_string_equal(string_of(event_of(&c, "s", "f", 0), "id"),
			    string_of(event_of(&c, "f", "f", 0), "id"));
	assert_string_not_equal(string_of(event_of(&c, "s", "f", 0), "id"),
				string_of(event_of(&c, "s", "f", 1), "id"));
	assert_string_equal(string_of(event_of(&c, "s", "g", 0), "id"), "0x6");
	assert_null(json_object_get(event_of(&c, "s", "g", 0), "id2"));
}

/* A number links as well as a text, in the Perfetto trace too. */
static void perfetto_takes_linked_numbers(void **state _unused_)
{
	static const char app[] =
		"[{\"name\":\"r\",\"ph\":\"b\",\"id\":1,\"ts\":2000000,\"pid\":1},"
		"{\"name\":\"l\",\"ph\":\"=\",\"id\":1,\"ts\":2000001,\"pid\":1,"
		"\"args\":{\"linked_id\":31}},"
		"{\"name\":\"r\",\"ph\":\"e\",\"id\":31,\"ts\":2000002,\"pid\":1}]";
	struct export_merge file = {
		.fd = memory_file(app, sizeof(app) - 1),
		.name = "app.json",
		.clock = MERGE_CLOCK_TRACE,
	};
	_cleanup_exported_ struct exported e = {
		.options = { .format = "pftrace", .merges = &file, .merge_count = 1 },
	};
	_cleanup_(maker_deinit) struct maker m;

	make_recording(&m);
	export_whole(&e, m.fd);
	close(file.fd);
	/* The end finds what the link joined to its begin: nothing is left out. */
	assert_int_equal(e.result.warning_count, 0);
}

static void samples_keep_their_process(void **state _unused_)
{
	static const char *const files[] = {
		"{\"traceEvents\":[],\"samples\":["
		"{\"tid\":2,\"pid\":1,\"ts\":2000000,\"name\":\"x\",\"weight\":1},"
		"{\"tid\":3,\"ts\":2000000,\"name\":\"x\",\"weight\":1}]}",
	};
	_cleanup_converted_ struct converted c = { 0 };
	json_t *samples;

	merge(&c, files, 1);
	samples = json_object_get(c.json, "samples");
	assert_number(json_array_get(samples, 0), "pid", 1);
	assert_null(json_object_get(json_array_get(samples, 1), "pid"));
}

/* As Trace Viewer draws them: of T up to the next step, of p since the last one. */
static void steps_are_slices(void **state _unused_)
{
	static const struct {
		const char *ph, *name;
		unsigned ts;
	} rows[] = {
		{ "b", "old", 2000000 },     { "b", "old:one", 2000001 },
		{ "e", "old:one", 2000002 }, { "b", "old:2", 2000002 },
		{ "e", "old:2", 2000003 },   { "e", "old", 2000003 },
		{ "b", "past", 2000000 },    { "b", "past:x", 2000000 },
		{ "e", "past:x", 2000004 },  { "b", "past:y", 2000004 },
		{ "e", "past:y", 2000005 },  { "e", "past", 2000006 },
		{ "n", "none", 2000000 },
	};
	_cleanup_converted_ struct converted c = { 0 };
	size_t i, found = 0;
	json_t *e;

#define OLD(name, ph, ts, more)                                                                    \
	"{\"name\":\"" name "\",\"ph\":\"" ph "\",\"id\":1,\"pid\":1,\"ts\":" ts more "},"
#define STEP(step) ",\"args\":{\"step\":" step "}"
	merge_events(&c,
		     OLD("old", "S", "2000000", "") OLD("old", "T", "2000001", STEP("\"one\""))
			     OLD("old", "T", "2000002", STEP("2")) OLD("old", "F", "2000003", "")
				     OLD("past", "S", "2000000", "") OLD("past", "p", "2000004",
									 STEP("\"x\""))
					     OLD("past", "p", "2000005", STEP("\"y\""))
						     OLD("past", "F", "2000006",
							 "") "{\"name\":\"none\",\"ph\":\"T\","
							     "\"id\":2,\"pid\":1,\"ts\":2000000}");
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		e = event_of(&c, rows[i].ph, rows[i].name, 0);
		if (!e || json_number_value(json_object_get(e, "ts")) != rows[i].ts)
			fail_msg("row %zu: %s %s", i, rows[i].ph, rows[i].name);
		assert_string_equal(string_of(e, "id"),
				    strcmp(rows[i].name, "none") ? "0x1" : "0x2");
	}
	json_array_foreach(json_object_get(c.json, "traceEvents"), i, e) found +=
		!!strchr("ben", *string_of(e, "ph"));
	assert_int_equal(found, ARRAY_SIZE(rows));
	/* A step begins with its arguments. */
	assert_string_equal(
		string_of(json_object_get(event_of(&c, "b", "old:one", 0), "args"), "step"), "one");
}

/* A clock sync whose partner is elsewhere, and that elsewhere. */
static void power_traces_go_through(void **state _unused_)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "# BattOr\\n0.00 1.0 4.0 <tie \\\"1\\\">\\n", NULL },
		{ "# BattOr\\n0.00 1.0 4.0\\n", "none of the file's clock_sync events" },
		{ "0.00 1.0 4.0 <tie \\\"1\\\">\\n", "does not begin with" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_converted_ struct converted c = { 0 };
		_cleanup_buf_ struct buf text = BUF_INIT;
		const char *power;
		json_t *sync;

		buf_printf(&text,
			   "{\"powerTraceAsString\":\"%s\",\"displayTimeUnit\":\"us\","
			   "\"traceEvents\":["
			   "{\"name\":\"clock_sync\",\"ph\":\"c\",\"ts\":2000000.5,\"pid\":1,"
			   "\"args\":{\"sync_id\":\"tie \\\"1\\\"\",\"issue_ts\":1999999}},"
			   "{\"name\":\"clock_sync\",\"ph\":\"c\",\"ts\":3000000,\"pid\":1,"
			   "\"args\":{\"sync_id\":\"tie \\\"1\\\"\"}}]}",
			   rows[i].text);
		merge(&c, (const char *[]){ buf_string(&text) }, 1);
		power = string_of(c.json, "powerTraceAsString");
		assert_int_equal(!power, !!rows[i].why);
		if (power)
			assert_string_equal(power, "# BattOr\n0.00 1.0 4.0 <tie \"1\">\n");
		else
			assert_true(warned(&c, rows[i].why));
		sync = event_of(&c, "c", "clock_sync", 0);
		assert_true(json_number_value(json_object_get(sync, "ts")) == 2000000.5);
		sync = json_object_get(sync, "args");
		assert_string_equal(string_of(sync, "sync_id"), "tie \"1\"");
		assert_number(sync, "issue_ts", 1999999);
		/* Trace Viewer refuses an id that comes twice. */
		assert_null(event_of(&c, "c", "clock_sync", 1));
		assert_true(warned(&c, "displayTimeUnit is left out"));
		assert_string_equal(string_of(c.json, "displayTimeUnit"), "ns");
	}
}

/* A trace has one of each: the first file's. */
static void files_with_the_same_members_are_told(void **state _unused_)
{
#define SYNC(id)                                                                                   \
	"\"traceEvents\":[{\"name\":\"clock_sync\",\"ph\":\"c\",\"ts\":2000000,\"pid\":1,"         \
	"\"args\":{\"sync_id\":\"" id "\"}}]"
#define POWER(id) "\"powerTraceAsString\":\"# BattOr\\n0.00 1.0 4.0 <" id ">\\n\"," SYNC(id)
	static const char *const files[] = {
		"{" POWER("one") "}",
		"{\"displayTimeUnit\":\"ms\",\"controllerTraceDataKey\":\"traceEvents\"," POWER(
			"two") "}",
		"{\"displayTimeUnit\":\"ns\",\"controllerTraceDataKey\":\"traceEvents\"," SYNC(
			"three") "}",
		"{\"powerTraceAsString\":[\"# BattOr\"]," SYNC("four") "}",
	};
	_cleanup_converted_ struct converted c = { 0 }, odd = { 0 };

	merge(&c, files, ARRAY_SIZE(files));
	assert_string_equal(string_of(c.json, "powerTraceAsString"),
			    "# BattOr\n0.00 1.0 4.0 <one>\n");
	assert_true(warned(&c, "app.2.json: its powerTraceAsString is left out: a trace has one, "
			       "and app.json came first"));
	assert_string_equal(string_of(c.json, "displayTimeUnit"), "ms");
	assert_true(warned(&c, "app.3.json: its displayTimeUnit is left out: a trace has one, and "
			       "app.2.json came first"));
	assert_string_equal(string_of(c.json, "controllerTraceDataKey"), "traceEvents");
	assert_false(warned(&c, "controllerTraceDataKey"));
	assert_true(warned(&c, "app.4.json: its powerTraceAsString is left out: it is no string"));
	merge(&odd, (const char *[]){ "{\"displayTimeUnit\":5," SYNC("one") "}" }, 1);
	assert_true(warned(&odd, "app.json: its displayTimeUnit is left out: it is no string"));
	assert_string_equal(string_of(odd.json, "displayTimeUnit"), "ns");
#undef POWER
#undef SYNC
}

/* Nothing is changed or lost in silence. */
static void odd_values_are_kept_or_reported(void **state _unused_)
{
	_cleanup_converted_ struct converted c = { 0 };
	json_t *e, *args;

	merge_events(&c, "{\"name\":\"\",\"ph\":\"i\",\"ts\":2000000,\"pid\":1,\"cname\":\"pink\","
			 "\"args\":{\"a\":-0.0,\"b\":-0,\"c\":0.0,\"d\":-7}},"
			 "{\"name\":\"far\",\"ph\":\"i\",\"ts\":109000001,\"pid\":1}");
	e = event_of(&c, "i", "", 0);
	assert_non_null(e);
	args = json_object_get(e, "args");
	for (const char *key = "a"; key; key = *key == 'a' ? "b" : NULL) {
		assert_true(json_is_real(json_object_get(args, key)));
		assert_true(signbit(json_real_value(json_object_get(args, key))));
	}
	assert_false(signbit(json_number_value(json_object_get(args, "c"))));
	assert_number(args, "d", -7);
	assert_null(json_object_get(e, "cname"));
	assert_true(warned(&c, "the colours of 1 mark are"));
	assert_non_null(event_of(&c, "i", "far", 0));
	assert_true(warned(&c, "app.json: an event lies 100 seconds after the recording"));
}

#define ODD_MARKS                                                                                  \
	"{\"name\":\"x\",\"ph\":\"B\",\"ts\":2000000,\"pid\":1},"                                  \
	"{\"name\":\"y\",\"ph\":\"E\",\"ts\":2000001,\"pid\":1},"                                  \
	"{\"name\":\"x\",\"ph\":\"B\",\"ts\":2000002,\"pid\":1},"                                  \
	"{\"name\":\"x\",\"ph\":\"E\",\"ts\":2000003,\"pid\":1},"                                  \
	"{\"name\":\"x\",\"ph\":\"B\",\"ts\":2000004,\"pid\":1},"                                  \
	"{\"ph\":\"E\",\"ts\":2000005,\"pid\":1},"                                                 \
	"{\"name\":\"c\",\"ph\":\"C\",\"ts\":2000006,\"pid\":1,"                                   \
	"\"args\":{\"n\":1,\"text\":\"1\",\"list\":[1]}}"

/* A slice keeps its begin's name, and a counter its numbers; the rest is reported. */
static void other_names_and_texts_are_reported(void **state _unused_)
{
	static const char ends[] = "1 end has another name than its begin";
	static const char values[] = "2 values of counters are left out: they are no finite";
	static const char file[] = "[" ODD_MARKS "]";
	struct export_merge merge = { .fd = memory_file(file, strlen(file)),
				      .name = "app.json",
				      .clock = MERGE_CLOCK_TRACE };
	_cleanup_exported_ struct exported perfetto = {
		.options = { .format = "pftrace", .merges = &merge, .merge_count = 1 }
	};
	_cleanup_converted_ struct converted c = { 0 };
	_cleanup_(maker_deinit) struct maker m;

	merge_events(&c, ODD_MARKS);
	assert_non_null(event_of(&c, "E", "x", 2));
	assert_null(event_of(&c, "E", "y", 0));
	assert_true(warned(&c, ends));
	assert_true(warned(&c, values));
	make_recording(&m);
	export_whole(&perfetto, m.fd);
	assert_true(exported_warned(&perfetto, ends));
	assert_true(exported_warned(&perfetto, values));
	close(merge.fd);
}
#undef ODD_MARKS

/* Programs hold as many bytes as the file will have. */
static void frames_count_as_they_are_written(void **state _unused_)
{
	static const char name[] = "\1\2\3\4\5\6\7\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a";
	struct mark mark = { .phase = PHASE_FRAME, .pid = 7, .has = HAS_OWN_FRAMES };
	struct json_frames frames = { 0 };
	_cleanup_buf_ struct buf names = BUF_INIT;
	char id[16];

	for (unsigned i = 0; i < 1000; i++)
		buf_puts(&names, name);
	assert_int_equal(buf_error(&names), 0);
	for (unsigned i = 0; i < 10; i++) {
		snprintf(id, sizeof(id), "%u", i);
		mark.part[PART_ID] = (struct text){ id, (uint32_t)strlen(id) };
		mark.part[PART_NAME] = (struct text){ names.data, (uint32_t)names.len };
		assert_int_equal(json_frames_add(&frames, &mark), 0);
	}
	assert_true(frames.text.len > 5 * 10 * names.len);
	assert_true(frames.shares.used >= frames.text.len);
	json_frames_deinit(&frames);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_ids_never_meet),
		cmocka_unit_test(unknown_frames_are_left_out),
		cmocka_unit_test(refused_marks_are_left_out),
		cmocka_unit_test(snapshots_have_no_id),
		cmocka_unit_test(ids_are_those_of_the_partners),
		cmocka_unit_test(perfetto_takes_linked_numbers),
		cmocka_unit_test(samples_keep_their_process),
		cmocka_unit_test(steps_are_slices),
		cmocka_unit_test(power_traces_go_through),
		cmocka_unit_test(files_with_the_same_members_are_told),
		cmocka_unit_test(odd_values_are_kept_or_reported),
		cmocka_unit_test(other_names_and_texts_are_reported),
		cmocka_unit_test(frames_count_as_they_are_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
