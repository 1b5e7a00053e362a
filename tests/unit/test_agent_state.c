/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent keeps the last serial, today's counts, and results that wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/backoff.h"
#include "agent/kept.h"
#include "agent/outcomes.h"
#include "agent/spool.h"
#include "agent/state.h"
#include "agent/upload.h"
#include "base/io.h"
#include "own_folder.h"

#define DAY UINT64_C(86400)
#define NOW (20000 * DAY)
#define NINE_BYTES_B2 "0fc1707839e250254500979e6fe40137ed3b5ad324532e7f93bfa7b7f43e83a8"

static void put_text(const char *path, const char *text)
{
	assert_int_equal(replace_file(path, text, strlen(text), 0600, false), 0);
}

static int load(struct state *s)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int r = state_load(s, ".", &err);

	assert_true(r == 0 || err.message);
	return r;
}

static void a_taken_order_is_not_forgotten(void **state _unused_)
{
	_cleanup_(state_deinit) struct state s = STATE_INIT;
	unsigned char digest[DIGEST_SIZE] = { 1, 2, 3 };
	struct state_taken passed = { "eu", 6, { 1, 2, 3 } };

	assert_int_equal(load(&s), 0);
	assert_int_equal(state_last_serial(&s), 0);
	assert_int_equal(state_take(&s, STATE_ALL, UINT64_MAX, digest, NOW, NULL), 0);
	assert_int_equal(state_take(&s, "eu", 4, digest, NOW, NULL), 0);
	assert_int_equal(state_take(&s, "eu", 5, digest, NOW, NULL), 0);
	assert_int_equal(state_pass_over(&s, &passed, NULL), 0);
	/* A later one was taken. */
	passed.serial = 5;
	assert_int_equal(state_pass_over(&s, &passed, NULL), 0);
	assert_int_equal(state_add_upload(&s, 1000, NOW, NULL), 0);
	assert_int_equal(state_add_upload(&s, 1000, NOW, NULL), 0);
	/* Nothing more is written at the end, as with kill -9. */
	state_deinit(&s);
	assert_int_equal(load(&s), 0);
	assert_true(state_last_serial(&s) == UINT64_MAX && s.open_count == 3);
	assert_true(s.open[1].serial == 4 && s.open[1].waits && s.open[2].waits);
	assert_int_equal(state_begin(&s, 4, NULL), 0);
	assert_true(state_serial(&s, STATE_ALL) == UINT64_MAX && state_serial(&s, "eu") == 6);
	assert_int_equal(state_serial(&s, "us"), 0);
	assert_int_equal(state_serial_after(&s, 0), 6);
	assert_true(state_serial_after(&s, 6) == UINT64_MAX);
	assert_int_equal(state_serial_after(&s, UINT64_MAX), 0);
	assert_true(state_knows(&s, "eu", 6, digest));
	assert_false(state_knows(&s, "eu", 5, digest));
	digest[DIGEST_SIZE - 1] = 1;
	assert_false(state_knows(&s, "eu", 6, digest));
	assert_int_equal(state_orders(&s, NOW), 3);
	assert_int_equal(state_uploads(&s, NOW), 2);
	assert_int_equal(state_bytes(&s, NOW), 2000);
	assert_int_equal(state_close(&s, 5, NULL), 0);
	assert_int_equal(state_close(&s, 5, NULL), 0);
	state_deinit(&s);
	assert_int_equal(load(&s), 0);
	assert_int_equal(s.open_count, 2);
	assert_true(s.open[0].serial == UINT64_MAX && s.open[0].waits);
	assert_true(s.open[1].serial == 4 && !s.open[1].waits);
	assert_int_equal(state_serial(&s, "eu"), 6);
}

/* A forgotten one's orders of the past could be taken again. */
static void no_group_is_forgotten_for_another(void **state _unused_)
{
	_cleanup_(state_deinit) struct state s = STATE_INIT;
	const unsigned char digest[DIGEST_SIZE] = { 1 };
	char group[65];

	assert_int_equal(load(&s), 0);
	for (int i = 0; i < STATE_GROUPS_MAX; i++) {
		snprintf(group, sizeof(group), "%064d", i);
		assert_int_equal(state_take(&s, group, 7, digest, NOW, NULL), 0);
		assert_int_equal(state_close(&s, 7, NULL), 0);
	}
	assert_int_equal(state_take(&s, "more", 7, digest, NOW, NULL), -ENOSPC);
	for (uint64_t i = 0; i < STATE_OPEN_MAX; i++)
		assert_int_equal(state_take(&s, group, 8 + i, digest, NOW, NULL), 0);
	assert_int_equal(state_take(&s, group, 100, digest, NOW, NULL), -ENOSPC);
	state_deinit(&s);
	assert_int_equal(load(&s), 0);
	assert_int_equal(s.taken_count, STATE_GROUPS_MAX);
	assert_int_equal(s.open_count, STATE_OPEN_MAX);
}

static void days_begin_by_the_clock(void **state _unused_)
{
	_cleanup_(state_deinit) struct state s = STATE_INIT;

	assert_int_equal(load(&s), 0);
	assert_int_equal(state_add_upload(&s, 10, NOW, NULL), 0);
	assert_int_equal(state_bytes(&s, NOW + DAY - 1), 10);
	assert_int_equal(state_bytes(&s, NOW - 1), 10);
	assert_int_equal(state_bytes(&s, NOW + DAY), 0);
	/* The clock was years ahead. */
	assert_int_equal(state_bytes(&s, NOW - 2 * DAY), 0);
	assert_int_equal(state_add_upload(&s, 10, NOW + DAY, NULL), 0);
	assert_int_equal(state_bytes(&s, NOW + DAY), 10);
}

static void damage_is_not_a_new_board(void **state _unused_)
{
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
	static const char *const wrong[] = {
		"",
		"7\n",
		"x",
		"open 7\n",
		"taken all 7 00\n",
		"taken all 7 " ZEROS,
		"taken all 7 " ZEROS " \n",
		"taken all 7 " ZEROS "0\n",
		"taken a/b 7 " ZEROS "\n",
		"taken all 7 " ZEROS "\nopen\n",
		"taken all 7 " ZEROS "\n\n",
	};
	_cleanup_(state_deinit) struct state s = STATE_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		put_text("taken", wrong[i]);
		assert_int_equal(load(&s), -EBADMSG);
	}
	/* A power cut may leave zeros. */
	assert_int_equal(
		replace_file("taken", "taken all 7 " ZEROS "\n\0", strlen(ZEROS) + 14, 0600, false),
		0);
	assert_int_equal(load(&s), -EBADMSG);
	assert_int_equal(unlink("taken"), 0);
	put_text("today", "1 2");
	assert_int_equal(load(&s), -EBADMSG);
}

/* A file system may turn read-only. */
static void what_cannot_be_removed_is_told(void **state _unused_)
{
	_cleanup_(spool_close) struct spool s = SPOOL_INIT;
	struct spool_entry entry = { .name = "gone", .size = 5 };

	assert_int_equal(spool_open(&s, AT_FDCWD, NULL), 0);
	s.bytes = 9;
	/* It gave way while it was sent, and is not counted any more. */
	assert_int_equal(spool_remove(&s, &entry), 0);
	assert_int_equal(s.bytes, 9);
	/* Somebody else removed the rest. */
	assert_int_equal(spool_next(&s, "", &entry), 0);
	assert_int_equal(s.bytes, 0);
	assert_int_equal(mkdirat(s.dirfd, "stays", 0700), 0);
	entry = (struct spool_entry){ .name = "stays", .size = 3 };
	s.bytes = 4;
	assert_true(spool_remove(&s, &entry) < 0);
	assert_int_equal(s.bytes, 4);
	assert_int_equal(unlinkat(s.dirfd, "stays", AT_REMOVEDIR), 0);
}

static void put_result(struct spool *s, uint64_t serial, const char *content, uint64_t max)
{
	put_text("result", content);
	assert_int_equal(spool_add(s, AT_FDCWD, "result", serial, "json", max, NULL), 0);
}

static enum outcome outcome_of(const struct status *status, uint64_t serial)
{
	return status_find(status, serial)->outcome;
}

/* Newer results need the room of one that is being sent: the store still gets it. */
static void a_result_that_is_sent_has_not_failed(void **state _unused_)
{
	_cleanup_(spool_close) struct spool s = SPOOL_INIT;
	struct status status = { .count = 0 };
	struct spool_entry entry;

	assert_int_equal(spool_open(&s, AT_FDCWD, NULL), 0);
	for (uint64_t serial = 5; serial <= 7; serial++)
		status_note(&status, serial, OUTCOME_UPLOADING, NULL);
	put_result(&s, 5, "five", 8);
	put_result(&s, 6, "six", 8);
	/* Order 5 is being sent; both give way. */
	put_result(&s, 7, "seventh", 8);
	assert_true(outcomes_note_results(&status, &s, 5, OUTCOME_FAILED, "gave way"));
	assert_int_equal(outcome_of(&status, 5), OUTCOME_UPLOADING);
	assert_int_equal(outcome_of(&status, 6), OUTCOME_FAILED);
	assert_int_equal(outcome_of(&status, 7), OUTCOME_UPLOADING);
	assert_false(outcomes_note_results(&status, &s, 5, OUTCOME_FAILED, "gave way"));
	/* It has arrived. */
	assert_true(outcomes_note_results(&status, &s, 0, OUTCOME_DONE, NULL));
	assert_int_equal(outcome_of(&status, 5), OUTCOME_DONE);
	assert_int_equal(outcome_of(&status, 7), OUTCOME_UPLOADING);
	assert_int_equal(spool_next(&s, "", &entry), 1);
	assert_int_equal(spool_remove(&s, &entry), 0);
}

static void one_agent_has_the_folder(void **state _unused_)
{
	_cleanup_(state_deinit) struct state s = STATE_INIT;
	struct state second = STATE_INIT;

	assert_int_equal(load(&s), 0);
	assert_int_equal(load(&second), -EBUSY);
}

/* A full disk, or here a folder in the way: the order is not taken. */
static void an_order_that_cannot_be_noted_is_not_taken(void **state _unused_)
{
	_cleanup_(state_deinit) struct state s = STATE_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;
	const unsigned char digest[DIGEST_SIZE] = { 1 };

	assert_int_equal(load(&s), 0);
	assert_int_equal(mkdir("taken.new", 0700), 0);
	assert_true(state_take(&s, STATE_ALL, 5, digest, NOW, &err) < 0);
	assert_int_equal(state_last_serial(&s) + s.open_count, 0);
	assert_int_equal(rmdir("taken.new"), 0);
}

static void add(struct spool *s, const char *text, uint64_t serial, uint64_t max, int wanted)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	put_text("result", text);
	assert_int_equal(spool_add(s, AT_FDCWD, "result", serial, "json", max, &err), wanted);
}

static void the_spool_gives_the_oldest_first(void **state _unused_)
{
	_cleanup_(spool_close) struct spool s = SPOOL_INIT;
	struct spool_entry entry, again, third;

	assert_int_equal(spool_open(&s, AT_FDCWD, NULL), 0);
	assert_int_equal(spool_next(&s, "", &entry), 0);
	add(&s, "ten bytes.", 10, 1000, 0);
	add(&s, "nine byt.", 9, 1000, 0);
	assert_int_equal(s.bytes, 19);
	assert_true(spool_has(&s, 9) && !spool_has(&s, 8));
	spool_close(&s);
	/* Files of others are left alone. */
	put_text("spool/notes.txt", "x");
	assert_int_equal(spool_open(&s, AT_FDCWD, NULL), 0);
	assert_int_equal(s.bytes, 19);
	assert_int_equal(spool_next(&s, "", &entry), 1);
	assert_int_equal(entry.serial, 9);
	assert_int_equal(entry.size, 9);
	/* b2sum -l 256 */
	assert_string_equal(entry.remote, NINE_BYTES_B2 ".json");
	/* The same content has the same name. */
	add(&s, "nine byt.", 9, 1000, 0);
	assert_int_equal(spool_next(&s, "", &again), 1);
	assert_string_equal(again.name, entry.name);
	assert_int_equal(spool_next(&s, entry.name, &again), 1);
	assert_int_equal(again.serial, 10);
	assert_int_equal(spool_next(&s, again.name, &third), 1);
	assert_int_equal(third.serial, 9);
	assert_int_equal(spool_remove(&s, &entry), 0);
	assert_int_equal(spool_next(&s, "", &entry), 1);
	assert_int_equal(entry.serial, 10);
	assert_int_equal(s.bytes, 10);
}

/* Or it would hold up all others, for ever if the limit was lowered. */
static void what_exceeds_today_is_passed_over(void **state _unused_)
{
	const struct policy policy = { .uploads_a_day = 9, .bytes_a_day = 8 };
	_cleanup_(state_deinit) struct state counts = STATE_INIT;
	_cleanup_(spool_close) struct spool s = SPOOL_INIT;
	struct upload u = { 0 };
	struct spool_entry entry;

	assert_int_equal(load(&counts), 0);
	assert_int_equal(spool_open(&s, AT_FDCWD, NULL), 0);
	add(&s, "nine byt.", 7, 1000, 0);
	add(&s, "three", 8, 1000, 0);
	assert_int_equal(upload_next(&u, NULL, &policy, &s, &counts, NULL), 0);
	assert_int_equal(spool_next(&s, u.failed, &entry), 1);
	assert_int_equal(entry.serial, 8);
}

static void a_full_spool_drops_the_oldest(void **state _unused_)
{
	_cleanup_(spool_close) struct spool s = SPOOL_INIT;
	struct spool_entry entry;

	assert_int_equal(spool_open(&s, AT_FDCWD, NULL), 0);
	add(&s, "ten bytes1", 1, 25, 0);
	add(&s, "ten bytes2", 2, 25, 0);
	add(&s, "ten bytes3", 3, 25, 0);
	assert_int_equal(s.dropped, 1);
	assert_int_equal(s.bytes, 20);
	assert_int_equal(spool_next(&s, "", &entry), 1);
	assert_int_equal(entry.serial, 2);
	/* One that can never fit takes nobody's place. */
	add(&s, "more than five and twenty bytes", 4, 25, -EFBIG);
	assert_int_equal(s.dropped, 1);
	assert_int_equal(s.bytes, 20);
}

static void what_gave_way_is_counted(void **state _unused_)
{
	_cleanup_(spool_close) struct spool s = SPOOL_INIT;

	assert_int_equal(spool_open(&s, AT_FDCWD, NULL), 0);
	s.counted = 2;
	add(&s, "ten bytes1", 1, 25, 0);
	add(&s, "ten bytes2", 2, 25, 0);
	add(&s, "ten bytes3", 2, 25, 0);
	assert_int_equal(s.gave_way, 0);
	add(&s, "ten bytes4", 2, 25, 0);
	assert_int_equal(s.gave_way, 1);
	assert_int_equal(s.dropped, 2);
}

static uint64_t serial_after(struct spool *s, char name[SPOOL_NAME_MAX])
{
	struct spool_entry entry;

	assert_int_equal(spool_next(s, name, &entry), 1);
	strcpy(name, entry.name);
	return entry.serial;
}

static void the_newest_may_be_first(void **state _unused_)
{
	_cleanup_(spool_close) struct spool s = SPOOL_INIT;
	char name[SPOOL_NAME_MAX] = "";

	assert_int_equal(spool_open(&s, AT_FDCWD, NULL), 0);
	s.sends_newest = true;
	add(&s, "ten bytes1", 1, 30, 0);
	add(&s, "ten bytes3", 3, 30, 0);
	add(&s, "ten bytes2", 2, 30, 0);
	assert_int_equal(serial_after(&s, name), 3);
	assert_int_equal(serial_after(&s, name), 2);
	assert_int_equal(serial_after(&s, name), 1);
	assert_int_equal(serial_after(&s, name), 3);
	/* A full spool drops the oldest all the same. */
	add(&s, "ten bytes4", 4, 30, 0);
	assert_int_equal(s.dropped, 1);
	assert_true(!spool_has(&s, 1) && spool_has(&s, 2));
}

static void segments_are_in_sequence(void **state _unused_)
{
	static const char *const suffixes[] = { "0002.json", "10000.json", "0001.json" };
	_cleanup_(spool_close) struct spool s = SPOOL_INIT;
	char name[SPOOL_NAME_MAX] = "";
	struct spool_entry entry;

	assert_int_equal(spool_open(&s, AT_FDCWD, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		put_text("result", suffixes[i]);
		assert_int_equal(spool_add(&s, AT_FDCWD, "result", 7, suffixes[i], 100, NULL), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		assert_int_equal(spool_next(&s, name, &entry), 1);
		strcpy(name, entry.name);
		assert_non_null(strstr(name, suffixes[(i + 2) % 3]));
	}
	/* The first one gives way. */
	put_text("result", "x");
	assert_int_equal(spool_add(&s, AT_FDCWD, "result", 8, "json", s.bytes, NULL), 0);
	assert_int_equal(spool_next(&s, "", &entry), 1);
	assert_non_null(strstr(entry.name, suffixes[0]));
}

static void a_full_spool_may_keep_what_it_has(void **state _unused_)
{
	_cleanup_(spool_close) struct spool s = SPOOL_INIT;
	char name[SPOOL_NAME_MAX] = "";

	assert_int_equal(spool_open(&s, AT_FDCWD, NULL), 0);
	s.drops_newest = true;
	add(&s, "ten bytes2", 2, 25, 0);
	add(&s, "ten bytes3", 3, 25, 0);
	add(&s, "ten bytes4", 4, 25, -ENOSPC);
	add(&s, "more than five and twenty bytes", 5, 25, -EFBIG);
	assert_true(s.dropped == 1 && s.bytes == 20);
	assert_int_equal(serial_after(&s, name), 2);
	assert_int_equal(serial_after(&s, name), 3);
	add(&s, "five.", 4, 25, 0);
	assert_int_equal(s.bytes, 25);
}

static bool is_seven(uint64_t serial, const void *data)
{
	assert_null(data);
	return serial == 7;
}

static void orders_are_kept(void **state _unused_)
{
	static const char *const damaged[] = { "",    "x",     "1",	 "1 -",
					       "1\n", "1 \nx", "- 1\nx", " -\nx" };
	_cleanup_close_ int fd = open(".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	_cleanup_kept_ struct kept k = { .order = BUF_INIT };

	assert_int_equal(kept_open(fd, NULL), 0);
	assert_int_equal(kept_open(fd, NULL), 0);
	assert_int_equal(kept_get(fd, 7, &k, NULL), -ENOENT);
	assert_int_equal(kept_put(fd, 7, 5, "a/b", "one\ntwo", 7, NULL), 0);
	assert_int_equal(kept_put(fd, UINT64_MAX, 6, NULL, "x", 1, NULL), 0);
	assert_int_equal(kept_get(fd, UINT64_MAX, &k, NULL), 0);
	assert_true(!k.place && k.start_s == 6 && k.order.len == 1);
	kept_deinit(&k);
	put_text("orders/7.new", "x");
	kept_sweep(fd, is_seven, NULL);
	assert_int_equal(access("orders/7.new", F_OK), -1);
	assert_int_equal(kept_get(fd, UINT64_MAX, &k, NULL), -ENOENT);
	assert_int_equal(kept_get(fd, 7, &k, NULL), 0);
	assert_true(k.start_s == 5 && k.order.len == 7 && !memcmp(k.order.data, "one\ntwo", 7));
	assert_string_equal(k.place, "a/b");
	for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
		_cleanup_kept_ struct kept none = { .order = BUF_INIT };

		put_text("orders/7", damaged[i]);
		assert_int_equal(kept_get(fd, 7, &none, NULL), -EBADMSG);
	}
}

static void outcomes_outlive_the_agent(void **state _unused_)
{
	_cleanup_close_ int fd = open(".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	struct status s = { 0 }, again = { 0 };
	static const char *const damaged[] = { "8 done",       "8 done \nx\n", "8 nothing \n", "-",
					       "8 waiting \n", "done 8 \n",    "8 done\n" };

	assert_int_equal(outcomes_load(&again, fd, NULL), 0);
	status_note(&s, 5, OUTCOME_LATER, NULL);
	status_note(&s, 6, OUTCOME_RECORDING, NULL);
	status_note(&s, 7, OUTCOME_FAILED, "a reason, with\nwords");
	status_note(&s, UINT64_MAX, OUTCOME_DONE, NULL);
	assert_int_equal(outcomes_save(&s, fd, NULL), 0);
	assert_int_equal(outcomes_load(&again, fd, NULL), 0);
	assert_int_equal(again.count, 2);
	assert_int_equal(again.orders[0].serial, 7);
	assert_int_equal(again.orders[0].outcome, OUTCOME_FAILED);
	assert_string_equal(again.orders[0].reason, s.orders[2].reason);
	assert_true(again.orders[1].serial == UINT64_MAX && !again.orders[1].reason[0]);
	for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;

		put_text("outcomes", damaged[i]);
		again = (struct status){ 0 };
		assert_int_equal(outcomes_load(&again, fd, &err), -EBADMSG);
		assert_true(again.count <= 1 && (!again.count || again.orders[0].serial == 8));
	}
}

static void failures_double_the_wait(void **state _unused_)
{
	struct backoff b = { 0 };
	uint64_t second = NSEC_PER_SEC;

	for (unsigned i = 0; i < 100; i++) {
		uint64_t mean = i > 11 ? 3600 * second : MIN(second << i, 3600 * second);

		backoff_failed(&b, 0, second, 0);
		assert_in_range(b.next_ns, mean / 2, mean * 3 / 2 + second);
	}
	backoff_failed(&b, 0, second, 7200);
	assert_in_range(b.next_ns, 9000 * second, 12601 * second);
	backoff_failed(&b, 0, second, UINT64_MAX);
	assert_in_range(b.next_ns, 0, 2 * 86400 * second);
	backoff_succeeded(&b, 0, 300 * second);
	assert_in_range(b.next_ns, 150 * second, 450 * second);
	assert_int_equal(b.failures, 0);
}

int main(void)
{
#define OWN_FOLDER(f) cmocka_unit_test_setup_teardown(f, own_folder_setup, own_folder_teardown)
	const struct CMUnitTest tests[] = {
		OWN_FOLDER(a_taken_order_is_not_forgotten),
		OWN_FOLDER(no_group_is_forgotten_for_another),
		OWN_FOLDER(days_begin_by_the_clock),
		OWN_FOLDER(damage_is_not_a_new_board),
		OWN_FOLDER(what_cannot_be_removed_is_told),
		OWN_FOLDER(what_exceeds_today_is_passed_over),
		OWN_FOLDER(a_result_that_is_sent_has_not_failed),
		OWN_FOLDER(one_agent_has_the_folder),
		OWN_FOLDER(an_order_that_cannot_be_noted_is_not_taken),
		OWN_FOLDER(the_spool_gives_the_oldest_first),
		OWN_FOLDER(a_full_spool_drops_the_oldest),
		OWN_FOLDER(what_gave_way_is_counted),
		OWN_FOLDER(the_newest_may_be_first),
		OWN_FOLDER(segments_are_in_sequence),
		OWN_FOLDER(orders_are_kept),
		OWN_FOLDER(a_full_spool_may_keep_what_it_has),
		OWN_FOLDER(outcomes_outlive_the_agent),
		cmocka_unit_test(failures_double_the_wait),
	};

	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
