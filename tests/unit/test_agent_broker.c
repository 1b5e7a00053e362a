/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Topics and what they show, orders that wait at once, and the board's status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <string.h>

#include "agent/jobs.h"
#include "agent/place.h"
#include "agent/status.h"
#include "agent/topic.h"
#include "base/io.h"
#include "fleet/word.h"

static void topics_have_their_names(void **state _unused_)
{
	const struct policy p = { .id = (char *)"door-17", .fleet = (char *)"doors" };
	_cleanup_buf_ struct buf all = BUF_INIT, group = BUF_INIT, status = BUF_INIT;

	topic_put_orders(&all, &p, STATE_ALL);
	topic_put_orders(&group, &p, "canary");
	topic_put_status(&status, &p);
	assert_string_equal(buf_string(&all), "traced/doors/all/orders");
	assert_string_equal(buf_string(&group), "traced/doors/canary/orders");
	assert_string_equal(buf_string(&status), "traced/doors/all/status/door-17");
}

static void no_name_is_a_pattern_of_topics(void **state _unused_)
{
	char word[] = "axb";

	for (int c = 0; c < 256; c++) {
		word[1] = (char)c;
		if (c && strchr("+#/$\"\\ %", c))
			assert_false(word_is_name(word));
		if ((c && c < ' ') || c >= 0x7f)
			assert_false(word_is_name(word));
	}
}

static void a_place_has_each_news_once(void **state _unused_)
{
	_cleanup_(order_place_deinit) struct place p = { 0 };
	static char large[ORDER_MAX + 1] = { 1 };

	place_show(&p, "order 7", 7);
	assert_int_equal(p.news, PLACE_ORDER);
	assert_string_equal(buf_string(&p.text), "order 7");
	/* News that nobody has looked at yet remain, whatever is shown again. */
	place_show(&p, "order 7", 7);
	assert_int_equal(p.news, PLACE_ORDER);
	place_forget(&p, 0);
	place_show(&p, "order 7", 7);
	assert_int_equal(p.news, PLACE_NONE);
	place_show(&p, "order 8", 7);
	place_show(&p, "order 9", 7);
	assert_int_equal(p.replaced, 1);
	assert_string_equal(buf_string(&p.text), "order 9");
	place_show(&p, large, sizeof(large));
	assert_int_equal(p.news, PLACE_TOO_LARGE);
	assert_int_equal(p.text.len, 0);
	place_forget(&p, 0);
	place_show(&p, large, sizeof(large));
	assert_int_equal(p.news, PLACE_NONE);
	place_show(&p, large, sizeof(large) - 1);
	assert_int_equal(p.news, PLACE_ORDER);
	assert_int_equal(p.text.len, ORDER_MAX);
}

static void no_withdrawal_is_lost(void **state _unused_)
{
	_cleanup_(order_place_deinit) struct place p = { 0 };

	place_show(&p, "order 7", 7);
	place_show(&p, NULL, 0);
	assert_true(p.is_withdrawn && p.news == PLACE_NONE && p.replaced == 1);
	place_show(&p, "order 7", 7);
	assert_true(p.is_withdrawn && p.news == PLACE_ORDER);
	/* The agent handles a withdrawal before it looks at news. */
	place_forget(&p, 0);
	assert_true(p.is_withdrawn && p.news == PLACE_NONE);
}

static void a_flood_is_looked_at_once_a_second(void **state _unused_)
{
	_cleanup_(order_place_deinit) struct place p = { 0 };

	place_show(&p, "order 7", 7);
	assert_in_range(p.due_ns, 0, NSEC_PER_SEC);
	place_forget(&p, 100 * NSEC_PER_SEC);
	place_show(&p, "order 8", 7);
	assert_int_equal(p.due_ns, 101 * NSEC_PER_SEC);
}

static void add(struct jobs *jobs, uint64_t serial, uint64_t start)
{
	struct job job = { .order = { .serial = serial, .fleet = strdup("doors") },
			   .start_ns = start };

	jobs_add(jobs, &job);
	assert_null(job.order.fleet);
}

static void serials_are(const struct jobs *jobs, const char *wanted)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	for (size_t i = 0; i < jobs->count; i++)
		buf_printf(&text, "%" PRIu64 " ", jobs->items[i].order.serial);
	assert_string_equal(buf_string(&text), wanted);
}

static void jobs_wait_by_their_start(void **state _unused_)
{
	_cleanup_(jobs_deinit) struct jobs jobs = { 0 };

	assert_null(jobs_next(&jobs));
	add(&jobs, 1, 50);
	add(&jobs, 2, 30);
	add(&jobs, 3, 50);
	serials_are(&jobs, "2 1 3 ");
	assert_int_equal(jobs_next(&jobs)->order.serial, 2);
	jobs.is_recording = jobs.is_withdrawn = true;
	/* Whatever its start is, it comes behind the one that is recorded. */
	add(&jobs, 4, 10);
	serials_are(&jobs, "2 4 1 3 ");
	assert_int_equal(jobs_next(&jobs)->order.serial, 4);
	jobs_remove(&jobs, 2);
	serials_are(&jobs, "2 4 3 ");
	assert_true(jobs.is_recording && jobs.is_withdrawn);
	jobs_remove(&jobs, 0);
	serials_are(&jobs, "4 3 ");
	assert_false(jobs.is_recording || jobs.is_withdrawn);
	for (uint64_t i = 0; i < JOBS_MAX - 2; i++)
		add(&jobs, 10 + i, 20);
	assert_int_equal(jobs.count, JOBS_MAX);
	jobs_remove(&jobs, JOBS_MAX - 1);
	jobs_remove(&jobs, 0);
	serials_are(&jobs, "10 11 12 13 14 15 ");
}

static json_t *read_status(const struct status *s)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	json_t *root;

	status_put(&text, s, "alive", 1795867200, 4096);
	assert_true(text.len <= 2048);
	root = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	return root;
}

static void a_status_names_the_last_orders(void **state _unused_)
{
	struct status s = { 0 };
	const char *outcome;
	json_t *root;

	for (uint64_t i = 1; i <= STATUS_ORDERS_MAX + 2; i++)
		status_note(&s, i, OUTCOME_WAITING, NULL);
	assert_int_equal(s.count, STATUS_ORDERS_MAX);
	assert_null(status_find(&s, 2));
	s.has_changed = false;
	status_note(&s, 5, OUTCOME_WAITING, NULL);
	assert_false(s.has_changed);
	status_note(&s, 5, OUTCOME_REFUSED, "expired");
	assert_true(s.has_changed);
	assert_int_equal(s.count, STATUS_ORDERS_MAX);
	assert_int_equal(s.orders[STATUS_ORDERS_MAX - 1].serial, 5);
	root = read_status(&s);
	assert_int_equal(json_array_size(json_object_get(root, "orders")), STATUS_ORDERS_MAX);
	assert_int_equal(json_integer_value(json_object_get(root, "spool_bytes")), 4096);
	outcome = json_string_value(json_object_get(
		json_array_get(json_object_get(root, "orders"), STATUS_ORDERS_MAX - 1), "outcome"));
	assert_string_equal(outcome, "refused");
	json_decref(root);
}

static void a_status_is_small_json_whatever_happens(void **state _unused_)
{
	struct status s = { 0 };
	char reason[1000];

	memset(reason, '"', sizeof(reason) - 1);
	reason[sizeof(reason) - 1] = '\0';
	for (uint64_t i = 0; i < STATUS_ORDERS_MAX; i++) {
		reason[0] = (char)(i + 1);
		reason[1] = '\xff';
		status_note(&s, INT64_MAX - i, OUTCOME_FAILED, reason);
	}
	json_decref(read_status(&s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(topics_have_their_names),
		cmocka_unit_test(no_name_is_a_pattern_of_topics),
		cmocka_unit_test(a_place_has_each_news_once),
		cmocka_unit_test(no_withdrawal_is_lost),
		cmocka_unit_test(a_flood_is_looked_at_once_a_second),
		cmocka_unit_test(jobs_wait_by_their_start),
		cmocka_unit_test(a_status_names_the_last_orders),
		cmocka_unit_test(a_status_is_small_json_whatever_happens),
	};

	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
