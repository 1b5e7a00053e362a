/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Marks that went through the Perfetto trace are what they were, as far as it holds them. */
#include "imported_marks.h"

#include <fcntl.h>

#include "base/io.h"

static bool same(const json_t *a, const json_t *b, const char *key)
{
	return !strcmp(string_of(a, key), string_of(b, key));
}

static uint64_t ns_of(const json_t *e, const char *key)
{
	return (uint64_t)(json_number_value(json_object_get(e, key)) * 1000 + 0.5);
}

/* The names of a stack's frames, the innermost first. */
static void spell_stack(const json_t *file, const json_t *id, struct buf *out)
{
	buf_clear(out);
	for (unsigned depth = 0; id && depth < 16; depth++) {
		char key[24];
		json_t *frame;

		snprintf(key, sizeof(key), "%lld", json_integer_value(id));
		frame = json_object_get(json_object_get(file, "stackFrames"),
					json_string_value(id) ?: key);
		assert_non_null(frame);
		buf_printf(out, "%s(%s) ", string_of(frame, "name"), string_of(frame, "category"));
		id = json_object_get(frame, "parent");
	}
	assert_non_null(buf_string(out));
}

static void check_stack(const json_t *in, const json_t *e, const json_t *out, const json_t *o,
			const char *key)
{
	_cleanup_buf_ struct buf a = BUF_INIT, b = BUF_INIT;

	spell_stack(in, json_object_get(e, key), &a);
	spell_stack(out, json_object_get(o, key), &b);
	assert_string_equal(a.data, b.data);
}

/* What the trace holds of a value. */
static json_t *as_held(const json_t *v)
{
	const json_t *element;
	json_t *held;
	const char *key;
	size_t i;

	if (json_is_null(v))
		return json_string("null");
	if (json_is_array(v) && json_array_size(v)) {
		held = json_array();
		json_array_foreach(v, i, element) json_array_append_new(held, as_held(element));
		return held;
	}
	if (json_is_array(v) || json_is_object(v)) {
		held = json_object();
		json_object_foreach((json_t *)(uintptr_t)v, key, element)
			json_object_set_new(held, key, as_held(element));
		return held;
	}
	return json_deep_copy(v);
}

static void check_args(const json_t *e, const json_t *o)
{
	json_t *held = as_held(json_object_get(e, "args"));
	const json_t *args = json_object_get(o, "args"), *cname = json_object_get(e, "cname");

	if (cname && !held)
		held = json_object();
	if (cname)
		json_object_set(held, "cname", (json_t *)(uintptr_t)cname);
	if (held && json_object_size(held) && !json_equal(held, args)) {
		char *a = json_dumps(held, 0), *b = json_dumps(args, JSON_ENCODE_ANY);

		fail_msg("%s: %s, not %s", string_of(e, "name"), b, a);
	}
	if (!held || !json_object_size(held))
		assert_true(!json_object_size(args));
	json_decref(held);
}

/* The phase that an event comes back with. */
static char phase_of(const json_t *e)
{
	static const char was[] = "ISTFPRNODvM", is[] = "ibneiibneiM";
	char ph = *string_of(e, "ph");
	const char *at = strchr(was, ph);

	return at ? is[at - was] : ph;
}

static bool has_thread(char ph)
{
	return strchr("BEXistf()", ph);
}

static bool is_match(const json_t *e, const json_t *o)
{
	char ph = phase_of(e), got = *string_of(o, "ph");
	bool global = json_object_get(json_object_get(e, "id2"), "global") ||
		      !strcmp(string_of(e, "s"), "g") || ph == 'V';

	/* A slice that has nothing in it is complete, if its end has nothing to say. */
	if (ph == 'E' && got == 'X' && !json_object_get(e, "args"))
		return ns_of(o, "ts") + ns_of(o, "dur") == ns_of(e, "ts") &&
		       integer_of(o, "tid") == integer_of(e, "tid");
	if (ph != got && !(ph == 'B' && got == 'X'))
		return false;
	if (ph != 'E' && !same(e, o, "name"))
		return false;
	if (!global && integer_of(e, "pid") != integer_of(o, "pid"))
		return false;
	if (has_thread(ph) && *string_of(e, "s") != 'p' && !global && json_object_get(e, "tid") &&
	    integer_of(e, "tid") != integer_of(o, "tid") && *string_of(e, "ph") != 'v')
		return false;
	if (ph == 'M')
		return !strncmp(string_of(e, "name"), "process", 7) ||
		       integer_of(e, "tid") == integer_of(o, "tid");
	/* It stands where what it is bound to begins. */
	if (ph == 'f' && !json_object_get(e, "bp"))
		return ns_of(o, "ts") >= ns_of(e, "ts");
	return ns_of(e, "ts") == ns_of(o, "ts");
}

static json_t *find_match(const json_t *e, const json_t *out)
{
	json_t *o;
	size_t i;

	json_array_foreach(rows_of(out, "traceEvents"), i, o) if (is_match(e, o)) return o;
	return NULL;
}

/* Ids that differ stay different ones, and those that are the same stay that. */
static void check_id(const json_t *e, const json_t *o, json_t *seen)
{
	char ph = phase_of(e);
	const json_t *id = json_object_get(e, "id") ?: json_object_get(e, "id2");
	const json_t *to = json_object_get(o, "id") ?: json_object_get(o, "id2");
	char *a = json_dumps(id, JSON_ENCODE_ANY), *b = json_dumps(to, JSON_ENCODE_ANY);
	char key[256], value[256];

	assert_non_null(a);
	assert_non_null(b);
	snprintf(key, sizeof(key), "in %s %s %c %s", string_of(e, "cat"), string_of(e, "scope"),
		 strchr("stf", ph)		      ? 'f'
		 : strchr("NOD", *string_of(e, "ph")) ? 'o'
						      : 'a',
		 a);
	snprintf(value, sizeof(value), "out %s", b);
	if (ph == '(' || ph == ')') {
		assert_string_equal(a, b);
	} else if (*string_of(e, "ph") != 'O') { /* a snapshot may have another category */
		if (!json_object_get(seen, key)) {
			if (json_object_get(seen, value))
				fail_msg("%s: %s is %s", key, value, string_of(seen, value));
			json_object_set_new(seen, key, json_string(value));
			json_object_set_new(seen, value, json_string(key));
		}
		assert_string_equal(string_of(seen, key), value);
		assert_string_equal(string_of(seen, value), key);
	}
	free(a);
	free(b);
}

/* Each series of a counter is one. */
static void check_counter(const json_t *e, const json_t *out)
{
	const char *name = string_of(e, "name"), *key;
	json_t *value;

	json_object_foreach(json_object_get(e, "args"), key, value)
	{
		bool found = false;
		char id[32] = "", wanted[256];
		json_t *o;
		size_t i;

		if (json_object_get(e, "id"))
			snprintf(id, sizeof(id), " 0x%llx",
				 json_integer_value(json_object_get(e, "id")));
		snprintf(wanted, sizeof(wanted), "%s%s%s%s", name, id,
			 strcmp(key, "value") ? " " : "", strcmp(key, "value") ? key : "");
		json_array_foreach(rows_of(out, "traceEvents"), i, o)
		{
			json_t *v = json_object_get(json_object_get(o, "args"), "value");

			if (*string_of(o, "ph") == 'C' && !strcmp(string_of(o, "name"), wanted) &&
			    ns_of(o, "ts") == ns_of(e, "ts") &&
			    integer_of(o, "pid") == integer_of(e, "pid"))
				found = json_equal(v, value) ||
					(json_is_real(value) &&
					 json_number_value(v) == json_real_value(value));
		}
		if (!found)
			fail_msg("%s is not there", wanted);
	}
}

static void check_event(const json_t *in, const json_t *e, const json_t *out, json_t *seen)
{
	static const char *const counts[] = { "tts", "ticount" };
	char ph = phase_of(e);
	json_t *o;

	if (ph == 'c' || ph == '=')
		return;
	if (ph == 'C')
		return check_counter(e, out);
	o = find_match(e, out);
	if (!o)
		fail_msg("%c %s is not there", ph, string_of(e, "name"));
	if (ph == 'E' && *string_of(o, "ph") == 'X')
		return;
	/* An end has its beginning's. */
	if (json_object_get(e, "cat") && ph != 'E')
		assert_string_equal(string_of(e, "cat"), string_of(o, "cat"));
	check_args(e, o);
	if (strchr("bnestf()", ph))
		check_id(e, o, seen);
	if (ph == 'i')
		assert_int_equal(*string_of(o, "s"), *string_of(e, "ph") == 'v' ? 'p'
						     : json_object_get(e, "s")	? *string_of(e, "s")
										: 't');
	if (*string_of(e, "ph") == 'X')
		assert_int_equal(ns_of(o, "dur"), ns_of(e, "dur"));
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		if (json_object_get(e, counts[i]))
			assert_int_equal(ns_of(e, counts[i]), ns_of(o, counts[i]));
	if (json_object_get(e, "tts") && json_object_get(e, "tdur"))
		assert_int_equal(ns_of(e, "tdur"), ns_of(o, "tdur"));
	if (json_object_get(e, "sf"))
		check_stack(in, e, out, o, "sf");
	if (json_object_get(e, "esf"))
		check_stack(in, e, out, o, "esf");
}

static void check_samples(const json_t *in, const json_t *out)
{
	json_t *s, *o;
	size_t i, at = 0;

	json_array_foreach(rows_of(in, "samples"), i, s)
	{
		if (!json_object_get(s, "cpu"))
			continue;
		o = json_array_get(rows_of(out, "samples"), at++);
		assert_non_null(o);
		assert_int_equal(integer_of(o, "cpu"), integer_of(s, "cpu"));
		assert_int_equal(integer_of(o, "tid"), integer_of(s, "tid"));
		assert_int_equal(ns_of(o, "ts"), ns_of(s, "ts"));
		assert_int_equal(integer_of(o, "weight"),
				 json_object_get(s, "weight") ? integer_of(s, "weight") : 1);
		assert_string_equal(string_of(o, "name"), "cpu-clock");
		check_stack(in, s, out, o, "sf");
	}
	assert_int_equal(json_array_size(rows_of(out, "samples")), at);
}

static void check_all(const char *text, size_t len, struct import *i)
{
	_cleanup_buf_ struct buf file = BUF_INIT;
	json_t *in = json_loadb(text, len, JSON_ALLOW_NUL, NULL), *seen = json_object(), *e;
	size_t n;

	assert_non_null(in);
	export_marks(text, len, &file);
	import_file(i, &file);
	if (i->left_out)
		fail_msg("%s", i->why);
	check_readable(i);
	json_array_foreach(rows_of(in, "traceEvents"), n, e) check_event(in, e, i->json, seen);
	check_samples(in, i->json);
	json_decref(seen);
	json_decref(in);
}

static void marks_come_back(void **state _unused_)
{
	_cleanup_import_ struct import i = { 0 };
	_cleanup_buf_ struct buf rich = BUF_INIT;
	unsigned complete = 0;
	json_t *e;
	size_t n;

	read_rich_marks(&rich);
	check_all(rich.data, rich.len, &i);
	json_array_foreach(rows_of(i.json, "traceEvents"), n, e)
	{
		complete += *string_of(e, "ph") == 'X';
		/* The kernel's losses are none of an application's. */
		assert_string_not_equal(string_of(e, "cat"), "loss");
	}
	assert_int_equal(complete, 10);
	assert_int_equal(json_object_size(json_object_get(i.json, "stackFrames")), 4);
}

static void every_phase_comes_back(void **state _unused_)
{
	_cleanup_import_ struct import i = { 0 };
	_cleanup_buf_ struct buf text = BUF_INIT;

	assert_int_equal(read_file_at(AT_FDCWD, TEST_DATA "/marks/phases.json", 1 << 20, &text), 0);
	check_all(text.data, text.len, &i);
}

/* Ids are hashes of what they are, and differ: by the order in which they come they do not. */
static void number_ids(const struct buf *text, struct buf *out)
{
	const char *p = text->data, *end = p + text->len, *id;
	char seen[64][20];
	unsigned count = 0, i;

	for (; (id = memmem(p, (size_t)(end - p), "\"0x", 3)); p = id) {
		size_t digits = strspn(id + 3, "0123456789abcdef");

		buf_append(out, p, (size_t)(id - p));
		p = id;
		id += 3 + digits;
		if (digits < 12) {
			buf_append(out, p, (size_t)(id - p));
			continue;
		}
		assert_true(digits <= 16);
		for (i = 0; i < count; i++)
			if (!strncmp(seen[i], p, digits + 4))
				break;
		assert_true(i < ARRAY_SIZE(seen));
		if (i == count)
			snprintf(seen[count++], sizeof(seen[0]), "%.*s", (int)digits + 4, p);
		buf_printf(out, "\"#%u", i);
	}
	buf_append(out, p, (size_t)(end - p));
	assert_non_null(buf_string(out));
}

/* What came back once comes back as it is. */
static void what_came_back_is_kept(void **state _unused_)
{
	_cleanup_buf_ struct buf rich = BUF_INIT, first = BUF_INIT, second = BUF_INIT;
	_cleanup_buf_ struct buf a = BUF_INIT, b = BUF_INIT;
	_cleanup_import_ struct import once = { 0 };
	_cleanup_import_ struct import twice = { 0 };

	read_rich_marks(&rich);
	export_marks(rich.data, rich.len, &first);
	import_file(&once, &first);
	export_marks(once.text.data, once.text.len, &second);
	import_file(&twice, &second);
	number_ids(&once.text, &a);
	number_ids(&twice.text, &b);
	assert_string_equal(a.data, b.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_come_back),
		cmocka_unit_test(every_phase_comes_back),
		cmocka_unit_test(what_came_back_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
