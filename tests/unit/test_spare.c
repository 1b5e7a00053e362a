/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The instances that the daemon prepares for the next recording: when they are made, taken and
 * removed.
 */
#include "service_harness.h"

#include <string.h>
#include <sys/utsname.h>

#include "daemon/service/session.h"

static void await_spares(struct daemon *d, int count)
{
	for (int i = 0; i < 1000 && (spares() != count || d->manager->sparing.under_way); i++)
		turn(d, 5);
	assert_int_equal(spares(), count);
	assert_int_equal(d->manager->sparing.under_way, 0);
}

static void turn_on(struct daemon *d)
{
	d->manager->config.spare = SPARE_YES;
	sparing_refresh(d->manager);
	await_spares(d, 1);
}

static uint64_t told_bytes(struct daemon *d, struct client *c)
{
	Reply *reply = ask(d, c, status_request(), -1);
	uint64_t bytes = reply->status->spare_bytes;

	done_with(reply);
	return bytes;
}

static void there_is_none_where_none_is_wanted(void **state)
{
	struct daemon *d = *state;
	struct client c;

	sparing_refresh(d->manager);
	greet(d, &c);
	start_ok(d, &c, "a", false);
	await_spares(d, 0);
	assert_int_equal(told_bytes(d, &c), 0);
	assert_int_equal(fakes.spares_taken, 0);
	assert_int_equal(d->manager->sparing.last_number, 0);
	client_close(&c);
}

static void one_by_default_as_memory_allows(void **state)
{
	/* For each CPU: the size asked for, and the expected size. */
	static const struct {
		uint64_t wanted, made;
	} sizes[] = { { 8192, 8192 }, { UINT64_C(1) << 50, 4096 } };
	struct daemon *d = *state;
	unsigned major, minor;
	struct utsname u;

	assert_int_equal(uname(&u), 0);
	assert_int_equal(sscanf(u.release, "%u.%u", &major, &minor), 2);
	d->manager->config.spare = SPARE_AUTO;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		d->manager->config.buffer_size = sizes[i].wanted;
		sparing_refresh(d->manager);
		if (major < 6 || (major == 6 && minor < 6)) {
			await_spares(d, 0);
			continue;
		}
		await_spares(d, 1);
		assert_int_equal(fakes.spare_buffer, sizes[i].made);
	}
}

static void a_recording_takes_it_and_another_is_made(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	turn_on(d);
	assert_int_equal(told_bytes(d, &c), 4096);
	assert_string_equal(fakes.spare_clock, "boot");
	assert_int_equal(fakes.spare_buffer, 4 << 20);
	start_ok(d, &c, "a", false);
	await_spares(d, 0);
	assert_int_equal(fakes.spares_taken, 1);
	assert_int_equal(told_bytes(d, &c), 0);
	start_ok(d, &c, "b", false);
	assert_int_equal(fakes.spares_taken, 1);
	/* Not before the last of them has ended. */
	assert_int_equal(d->manager->sparing.last_number, 1);
	client_close(&c);
	await_spares(d, 1);
	greet(d, &c);
	assert_int_equal(told_bytes(d, &c), 2 * 4096);
	start_ok(d, &c, "c", false);
	assert_int_equal(fakes.spares_taken, 2);
	client_close(&c);
	await_spares(d, 1);
}

static void the_second_of_two_at_once_goes_without(void **state)
{
	struct daemon *d = *state;
	struct client a, b;
	Traced__Control__Start start = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, start);
	Reply *reply;

	greet(d, &a);
	greet(d, &b);
	turn_on(d);
	fakes.arming_ms = 50;
	start.name = (char *)"a";
	tell(&a, &request, -1);
	start.name = (char *)"b";
	tell(&b, &request, -1);
	reply = hear(d, &a);
	assert_null(reply->error);
	done_with(reply);
	reply = hear(d, &b);
	assert_null(reply->error);
	done_with(reply);
	assert_int_equal(fakes.spares_taken, 1);
	client_close(&a);
	await_captures(d, 1);
	/* Time for the worker's answer and its consequences. */
	turn(d, 50);
	await_spares(d, 0);
	assert_int_equal(d->manager->sparing.last_number, 1);
	client_close(&b);
	await_spares(d, 1);
	assert_int_equal(d->manager->sparing.last_number, 2);
}

static void an_arming_that_fails_costs_it(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	turn_on(d);
	fakes.new_error = -ENOENT;
	assert_error(start(d, &c, "a", false, false, 0), ENOENT, "no such event");
	await_spares(d, 1);
	assert_int_equal(fakes.spares_taken, 1);
	assert_int_equal(d->manager->sparing.last_number, 2);
	client_close(&c);
}

static void one_that_can_not_be_made_is_done_without(void **state)
{
	struct daemon *d = *state;
	struct client c;

	greet(d, &c);
	fakes.spare_error = -ENOMEM;
	d->manager->config.spare = SPARE_YES;
	sparing_refresh(d->manager);
	await_spares(d, 0);
	assert_int_equal(told_bytes(d, &c), 0);
	start_ok(d, &c, "a", false);
	fakes.spare_error = 0;
	await_spares(d, 0);
	assert_int_equal(fakes.spares_taken, 0);
	client_close(&c);
	await_spares(d, 1);
}

static void configure(struct daemon *d, const char *text)
{
	FILE *file = fopen(d->manager->options.config_file, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	manager_reload(d->manager);
}

static void a_reload_turns_it_on_and_off(void **state)
{
	struct daemon *d = *state;
	char path[128];
	struct client c;

	greet(d, &c);
	snprintf(path, sizeof(path), "%s/conf", d->dir);
	d->manager->options.config_file = path;
	configure(d, "[daemon]\nspare = yes\n");
	await_spares(d, 1);
	configure(d, "[daemon]\nspare = yes\n[limits]\nclients = 3\n");
	await_spares(d, 1);
	assert_int_equal(d->manager->sparing.last_number, 1);
	configure(d, "[daemon]\nspare = yes\n[defaults]\nbuffer_size = 1M\n");
	await_spares(d, 1);
	assert_int_equal(fakes.spare_buffer, 1 << 20);
	configure(d, "[daemon]\nspare = yes\n[defaults]\nbuffer_size = 1M\nclock = mono\n");
	await_spares(d, 1);
	assert_string_equal(fakes.spare_clock, "mono");
	assert_int_equal(d->manager->sparing.last_number, 3);
	configure(d, "[daemon]\nspare = no\n");
	await_spares(d, 0);
	assert_int_equal(told_bytes(d, &c), 0);
	configure(d, "[daemon]\nspare = yes\n");
	configure(d, "[daemon]\nspare = no\n");
	await_spares(d, 0);
	unlink(path);
	client_close(&c);
}

static void a_daemon_of_one_client_has_none(void **state)
{
	struct daemon *d = *state;

	d->manager->options.private = true;
	d->manager->config.spare = SPARE_YES;
	sparing_refresh(d->manager);
	await_spares(d, 0);
	assert_int_equal(d->manager->sparing.last_number, 0);
}

static void a_daemon_that_ends_makes_none(void **state)
{
	struct daemon *d = *state;
	Traced__Control__Start start = TRACED__CONTROL__START__INIT;
	REQUEST(request, START, start, start);
	struct client c;

	greet(d, &c);
	turn_on(d);
	fakes.arming_ms = 30;
	start.name = (char *)"a";
	tell(&c, &request, -1);
	turn(d, 5);
	manager_stop(d->manager);
	await_captures(d, 0);
	assert_int_equal(d->manager->sparing.last_number, 1);
	client_close(&c);
}

/* The teardown checks what is left. */
static void what_is_left_goes_with_the_daemon(void **state)
{
	turn_on(*state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SERVICE_TEST(there_is_none_where_none_is_wanted),
		SERVICE_TEST(one_by_default_as_memory_allows),
		SERVICE_TEST(a_recording_takes_it_and_another_is_made),
		SERVICE_TEST(the_second_of_two_at_once_goes_without),
		SERVICE_TEST(an_arming_that_fails_costs_it),
		SERVICE_TEST(one_that_can_not_be_made_is_done_without),
		SERVICE_TEST(a_reload_turns_it_on_and_off),
		SERVICE_TEST(a_daemon_of_one_client_has_none),
		SERVICE_TEST(a_daemon_that_ends_makes_none),
		SERVICE_TEST(what_is_left_goes_with_the_daemon),
	};
	int r = service_test_begin(argc, argv);

	return r >= 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
