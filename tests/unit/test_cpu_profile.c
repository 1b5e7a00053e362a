/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Profiles of gperftools' CPU profiler: of every kind of machine, damaged ones, and as samples of a
 * trace.
 */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/io.h"
#include "formats/formats.h"
#include "make_stream.h"
#include "memory_file.h"
#include "samples/cpu_profile.h"
#include "samples/profile_marks.h"

struct kind {
	unsigned slot;
	bool big_endian;
};
static const struct kind kinds[] = { { 8, false }, { 8, true }, { 4, false }, { 4, true } };

static void put_slot(struct buf *b, const struct kind *k, uint64_t value)
{
	for (unsigned i = 0; i < k->slot; i++)
		buf_putc(b, (char)(value >> 8 * (k->big_endian ? k->slot - 1 - i : i)));
}

static void put_slots(struct buf *b, const struct kind *k, const uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_slot(b, k, values[i]);
}
#define PUT_SLOTS(b, k, ...)                                                                       \
	put_slots((b), (k), (const uint64_t[]){ __VA_ARGS__ },                                     \
		  sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

#define TEXT_LINES                                                                                 \
	"  build=/opt/app\n"                                                                       \
	"00010000-00020000 r-xp 00000000 fd:00 11   $build/bin/tool\n"                             \
	"00030000-00031000 r-xp 00002000 fd:00 12   /lib/$builder/$build.so\n"                     \
	"00040000-00041000 rw-p 00000000 00:00 0    [heap]\n"                                      \
	" 00050000-00051000 r-xp 00000000 fd:00 13   /not/at/the/line's/begin\n"                   \
	"00052000-00051000 r-xp 00000000 fd:00 14   /backwards\n"                                  \
	"what nobody knows\n\n"

/* Bytes before its text. */
static size_t make_profile(struct buf *b, const struct kind *k)
{
	size_t binary;

	*b = BUF_INIT;
	PUT_SLOTS(b, k, 0, 3, 0, 10000, 0);
	PUT_SLOTS(b, k, 5, 3, 0x10010, 0x10020, 0x10030);
	PUT_SLOTS(b, k, 1, 1, 0x30004);
	PUT_SLOTS(b, k, 2, 3, 0x10010, 0x10020, 0x10030);
	PUT_SLOTS(b, k, 0, 1, 0);
	binary = b->len;
	buf_puts(b, TEXT_LINES);
	return binary;
}

static void all_kinds_are_read(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		_cleanup_buf_ struct buf b;
		struct cpu_profile p;

		make_profile(&b, &kinds[i]);
		assert_int_equal(cpu_profile_parse(&p, b.data, b.len, NULL), 0);
		assert_int_equal(p.slot, kinds[i].slot);
		assert_int_equal(p.big_endian, kinds[i].big_endian);
		assert_int_equal(p.period_us, 10000);
		assert_int_equal(p.samples, 8);
		assert_int_equal(p.stack_count, 2);
		assert_int_equal(p.stacks[0].count, 7);
		assert_int_equal(p.stacks[0].depth, 3);
		assert_int_equal(cpu_profile_pc(&p, &p.stacks[0], 0), 0x10010);
		assert_int_equal(cpu_profile_pc(&p, &p.stacks[0], 2), 0x10030);
		assert_int_equal(p.stacks[1].count, 1);
		assert_int_equal(p.mapping_count, 2);
		assert_string_equal(p.mappings[0].path, "/opt/app/bin/tool");
		assert_string_equal(p.mappings[1].path, "/lib/$builder//opt/app.so");
		assert_int_equal(p.mappings[1].offset, 0x2000);
		assert_ptr_equal(cpu_profile_find(&p, 0x10000), &p.mappings[0]);
		assert_ptr_equal(cpu_profile_find(&p, 0x1ffff), &p.mappings[0]);
		assert_null(cpu_profile_find(&p, 0x20000));
		assert_null(cpu_profile_find(&p, 0xffff));
		assert_ptr_equal(cpu_profile_find(&p, 0x30fff), &p.mappings[1]);
		cpu_profile_deinit(&p);
	}
}

/* A profile truncated before its text is refused; within the text nobody can tell. */
static void cut_profiles_are_refused(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		_cleanup_buf_ struct buf b;
		size_t binary = make_profile(&b, &kinds[i]);

		for (size_t len = 0; len <= b.len; len++) {
			_cleanup_error_ struct error err = ERROR_INIT;
			/* A heap block of its own, so that a sanitizer sees reads beyond it. */
			_cleanup_free_ char *copy = malloc(len ?: 1);
			struct cpu_profile p;

			assert_non_null(copy);
			memcpy(copy, b.data, len);
			assert_int_equal(cpu_profile_parse(&p, copy, len, &err),
					 len < binary ? -EBADMSG : 0);
			assert_int_equal(err.message != NULL, len < binary);
			cpu_profile_deinit(&p);
		}
	}
}

/* False counts cost neither memory nor time. */
static void lies_are_refused(void **state _unused_)
{
	const struct {
		const char *says;
		uint64_t slots[8];
		size_t count;
	} rows[] = {
		{ "not a profile", { 1, 3, 0, 10000, 0, 0, 1, 0 }, 8 },
		{ "not a profile", { 0, 2, 0, 10000, 0, 0, 1, 0 }, 8 },
		{ "not a profile", { 0, 3, 1, 10000, 0, 0, 1, 0 }, 8 },
		{ "not a profile", { 0, UINT64_MAX, 0, 10000, 0, 0, 1, 0 }, 8 },
		{ "within its header", { 0, 1000, 0, 10000, 0, 0, 1, 0 }, 8 },
		{ "period", { 0, 3, 0, 0, 0, 0, 1, 0 }, 8 },
		{ "period", { 0, 3, 0, INT64_MAX, 0, 0, 1, 0 }, 8 },
		{ "addresses, but", { 0, 3, 0, 10000, 0, 1, UINT64_C(1) << 40, 7 }, 8 },
		{ "addresses, but", { 0, 3, 0, 10000, 0, 1, UINT64_MAX, 7 }, 8 },
		{ "no address", { 0, 3, 0, 10000, 0, 1, 0, 7 }, 8 },
		{ "counts nothing", { 0, 3, 0, 10000, 0, 0, 1, 7 }, 8 },
		{ "within its records", { 0, 3, 0, 10000, 0, 1, 1, 7 }, 8 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_buf_ struct buf b = BUF_INIT;
		struct cpu_profile p;

		put_slots(&b, &kinds[0], rows[i].slots, rows[i].count);
		assert_int_equal(cpu_profile_parse(&p, b.data, b.len, &err), -EBADMSG);
		if (!strstr(err.message, rows[i].says))
			fail_msg("row %zu: %s", i, err.message);
		cpu_profile_deinit(&p);
	}
}

static void sums_saturate(void **state _unused_)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct cpu_profile p;

	PUT_SLOTS(&b, &kinds[0], 0, 3, 0, 1, 0, UINT64_MAX, 1, 7, UINT64_MAX, 1, 7, 0, 1, 0);
	assert_int_equal(cpu_profile_parse(&p, b.data, b.len, NULL), 0);
	assert_int_equal(p.stack_count, 1);
	assert_int_equal(p.stacks[0].count, UINT64_MAX);
	assert_int_equal(p.samples, UINT64_MAX);
	cpu_profile_deinit(&p);
}

/* A caller is looked up by the instruction before its return address. */
static const char *find_name(void *userdata, const struct code_place *place)
{
	size_t *asked = userdata;

	++*asked;
	if (strcmp(place->path, "/opt/app/bin/tool") != 0)
		return NULL;
	return place->offset == 0x10	   ? "leaf@@V_1"
	       : place->offset == 0x20 - 1 ? "middle"
	       : place->offset == 0x30 - 1 ? "main"
					   : "?";
}

#define BEGIN UINT64_C(5000000000)

static json_t *convert(uint64_t length_ns, struct error *err)
{
	_cleanup_close_ int out = memory_file("", 0), in = -EBADF;
	struct export_profile profile = { .name = "dir/app.prof" };
	Traced__Capture__End end = TRACED__CAPTURE__END__INIT;
	_cleanup_(maker_deinit) struct maker m;
	_cleanup_buf_ struct buf b, text = BUF_INIT;
	struct export_result result;
	json_t *json = NULL;
	size_t asked = 0;
	struct export_symbols symbols = { find_name, &asked };
	struct export_options o = {
		.format = "json", .profiles = &profile, .profile_count = 1, .symbols = &symbols
	};

	make_profile(&b, &kinds[3]);
	in = profile.fd = memory_file(b.data, length_ns ? b.len : 70);
	maker_begin(&m, 4096);
	page_begin(&m, BEGIN);
	event_number(&m, BEGIN + 10, 7, 1);
	page_flush(&m, 0, 0);
	end.start_boot_ns = BEGIN;
	end.boot_ns = BEGIN + length_ns;
	assert_int_equal(stream_write_message(&m.writer, CHUNK_END, &end.base), 0);
	if (export_stream(m.fd, out, &o, &result, err) == 0) {
		assert_int_equal(asked, 4);
		memory_file_read(out, &text);
		json = json_loadb(text.data, text.len, 0, NULL);
		assert_non_null(json);
	}
	export_result_deinit(&result);
	return json;
}

static void check_sample(const json_t *json, size_t i, double us, json_int_t weight,
			 const char *const *stack)
{
	json_t *s = json_array_get(json_object_get(json, "samples"), i), *frame;
	const char *id = json_string_value(json_object_get(s, "sf"));

	assert_int_equal(json_integer_value(json_object_get(s, "tid")), PROFILE_TID_FIRST);
	assert_true(json_number_value(json_object_get(s, "ts")) == us);
	assert_int_equal(json_integer_value(json_object_get(s, "weight")), weight);
	assert_string_equal(json_string_value(json_object_get(s, "name")), "cpu-time");
	for (; *stack; stack++) {
		assert_non_null(id);
		frame = json_object_get(json_object_get(json, "stackFrames"), id);
		assert_string_equal(json_string_value(json_object_get(frame, "name")), *stack);
		id = json_string_value(json_object_get(frame, "parent"));
	}
	assert_null(id);
}

static const json_t *told(const json_t *json)
{
	return json_array_get(json_object_get(json_object_get(json, "otherData"), "cpu_profiles"),
			      0);
}

static void a_profile_becomes_samples(void **state _unused_)
{
	json_t *json = convert(NSEC_PER_SEC, NULL);

	assert_int_equal(json_array_size(json_object_get(json, "samples")), 2);
	check_sample(json, 0, 5000000, 7, (const char *const[]){ "leaf", "middle", "main", NULL });
	check_sample(json, 1, 5070000, 1, (const char *const[]){ "app.so+0x2004", NULL });
	assert_int_equal(json_integer_value(json_object_get(told(json), "placed_ns")), 80000000);
	assert_int_equal(json_integer_value(json_object_get(told(json), "frames_without_name")), 1);
	assert_non_null(strstr(json_string_value(json_object_get(told(json), "times")), "none"));
	json_decref(json);
}

/* A profile longer than the recording is spread over the recording. */
static void a_long_profile_is_squeezed(void **state _unused_)
{
	json_t *json = convert(8000, NULL);

	check_sample(json, 0, 5000000, 7, (const char *const[]){ "leaf", "middle", "main", NULL });
	check_sample(json, 1, 5000007, 1, (const char *const[]){ "app.so+0x2004", NULL });
	assert_int_equal(json_integer_value(json_object_get(told(json), "placed_ns")), 8000);
	json_decref(json);
}

static void a_damaged_profile_fails_the_export(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_null(convert(0, &err));
	assert_int_equal(err.code, EINVAL);
	assert_non_null(strstr(err.message, "dir/app.prof: its record at byte 52 has"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds_are_read),
		cmocka_unit_test(cut_profiles_are_refused),
		cmocka_unit_test(lies_are_refused),
		cmocka_unit_test(sums_saturate),
		cmocka_unit_test(a_profile_becomes_samples),
		cmocka_unit_test(a_long_profile_is_squeezed),
		cmocka_unit_test(a_damaged_profile_fails_the_export),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
