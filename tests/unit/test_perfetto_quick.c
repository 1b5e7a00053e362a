/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Every event of every kernel in tests/data, written to protobuf by the quick ways and by the plain
 * ones: the bytes are the same for whole records, truncated ones and noise.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "by_library.h"
#include "fixture.h"
#include "formats/perfetto/op.h"
#include "random_series.h"

#define ROUNDS 24

static uint64_t random_state = RANDOM_FIRST;

static uint64_t random_u64(void *userdata _unused_)
{
	return random_next(&random_state);
}

static void add_format(void *userdata, const char *system, const char *text, size_t len)
{
	assert_int_equal(event_table_add(userdata, system, text, len, NULL), 0);
}

/* A record of the event at data, whole or damaged. */
static uint32_t draw_record(const struct event *ev, unsigned round, uint8_t *data)
{
	uint32_t len = make_record(ev, (enum wildness)(round % WILD_KINDS), random_u64, NULL, data);

	if (round % 4 == 2)
		for (uint32_t i = 8; i < len; i++)
			data[i] = (uint8_t)random_u64(NULL);
	if (round % 4 == 3 && len > 8)
		len = 8 + (uint32_t)(random_u64(NULL) % (len - 8));
	return len;
}

static void forget_quick_ways(const struct pf_event *e)
{
	for (size_t i = 0; i < e->op_count; i++)
		e->ops[i].quick = PF_ASK;
	if (e->free_text)
		forget_quick_ways(e->free_text);
}

static unsigned compare(struct pf_schema *const schemas[2], const struct event *desc)
{
	static uint8_t data[RECORD_MAX];
	unsigned quick = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct trace_event ev = {
			.desc = desc,
			.id = desc->id,
			.pid = (int32_t)(random_u64(NULL) % 3),
			.rec = { .ts = random_u64(NULL) >> round * 2, .data = data },
		};
		struct buf wire[2] = { BUF_INIT, BUF_INIT };
		int result[2];

		ev.rec.len = draw_record(desc, round, data);
		for (unsigned i = 0; i < 2; i++) {
			const struct pf_event *e = schemas[i]->events[ev.id];

			assert_non_null(e);
			if (e->free_text)
				e = pf_schema_notice(schemas[i], e, &ev);
			result[i] = pf_event_write(schemas[i], e, &ev, &wire[i]);
		}
		if (result[0] != result[1] || wire[0].len != wire[1].len ||
		    memcmp(wire[0].data, wire[1].data, wire[0].len) != 0)
			fail_msg("%s:%s differs in round %u", desc->system, desc->name, round);
		buf_deinit(&wire[0]);
		buf_deinit(&wire[1]);
	}
	for (size_t i = 0; i < schemas[0]->events[desc->id]->op_count; i++) {
		quick += schemas[0]->events[desc->id]->ops[i].quick != PF_ASK;
		assert_int_equal(schemas[1]->events[desc->id]->ops[i].quick, PF_ASK);
	}
	return quick;
}

static void compare_kernel(const char *kernel, enum pointer_mode pointers, bool legacy)
{
	const struct event_table_env env = { .word_size = 8, .pointers = pointers };
	struct event_table *table;
	struct pf_schema *schemas[2];
	const struct event *const *all;
	size_t count;
	unsigned quick = 0;

	assert_int_equal(event_table_new(&table, &env), 0);
	fixture_each_format(kernel, add_format, table);
	assert_int_equal(event_table_seal(table, NULL), 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct pf_schema_env how = {
			.table = table,
			.word_size = 8,
			.raw_addresses = pointers == POINTER_RAW,
			.legacy_generic = legacy,
		};

		assert_int_equal(pf_schema_new(&schemas[i], &how), 0);
	}
	all = event_table_all(table, &count);
	for (size_t i = 0; i < count; i++)
		forget_quick_ways(schemas[1]->events[all[i]->id]);
	for (size_t i = 0; i < count; i++)
		quick += compare(schemas, all[i]);
	assert_true(count > 1000);
	print_message("%s: %u fields the quick way\n", kernel, quick);
	assert_true(quick > 200 || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__);
	pf_schema_free(schemas[0]);
	pf_schema_free(schemas[1]);
	event_table_free(table);
}

static void events_of_6_1(void **state _unused_)
{
	compare_kernel("6.1.176", POINTER_HASHED, false);
}

static void events_of_6_12(void **state _unused_)
{
	compare_kernel("6.12.107", POINTER_RAW, false);
}

static void events_of_6_18_for_old_readers(void **state _unused_)
{
	compare_kernel("6.18.44", POINTER_HASHED, true);
}

static void events_of_7_2(void **state _unused_)
{
	compare_kernel("7.2.13", POINTER_HASHED, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_of_6_1),
		cmocka_unit_test(events_of_6_12),
		cmocka_unit_test(events_of_6_18_for_old_readers),
		cmocka_unit_test(events_of_7_2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
