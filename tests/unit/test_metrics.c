/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "occurrences.h"
#include "service_harness.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/service/metrics.h"
#include "daemon/service/session.h"

static void use_file(struct daemon *d, const char *name)
{
	assert_true(asprintf(&d->manager->config.metrics, "%s/%s", d->dir, name) > 0);
}

/* The file's content; NULL: there is none. */
static char *contents(struct daemon *d)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (read_file_at(AT_FDCWD, d->manager->config.metrics, 1 << 20, &text) < 0)
		return NULL;
	return buf_string(&text) ? strdup(text.data) : NULL;
}

/* The file, brought up to date. */
static char *fresh_contents(struct daemon *d)
{
	char *text;

	metrics_write(d->manager);
	text = contents(d);
	assert_non_null(text);
	return text;
}

static void remove_file(struct daemon *d)
{
	assert_int_equal(unlink(d->manager->config.metrics), 0);
}

/* The daemon writes the file once more when it ends. */
static void end_daemon(struct daemon *d)
{
	_cleanup_free_ char *path = strdup(d->manager->config.metrics);

	d->manager = manager_free(d->manager);
	assert_int_equal(unlink(path), 0);
}

static void assert_has(const char *text, const char *line)
{
	const char *at = text ? strstr(text, line) : NULL;

	if (!at || (at != text && at[-1] != '\n'))
		fail_msg("no \"%s\" in:\n%s", line, text ?: "(nothing)");
}

static void stop_ok(struct daemon *d, struct client *c, const char *name)
{
	int out = memfd_create("out", MFD_CLOEXEC);
	Reply *reply = ask(d, c, stop_request(name, "txt"), out);

	assert_null(reply->error);
	done_with(reply);
	close(out);
}

static void a_session_is_told_of_while_it_records_and_after(void **state)
{
	struct daemon *d = *state;
	_cleanup_free_ char *during = NULL, *after = NULL;
	char line[128];
	struct client c;
	struct stat st;

	use_file(d, "traced.prom");
	greet(d, &c);
	start_ok(d, &c, "a", false);
	during = contents(d);
	snprintf(line, sizeof(line), "traced_session_recording{session=\"a\",user=\"%u\"} 1\n",
		 getuid());
	assert_has(during, line);
	snprintf(line, sizeof(line), "traced_session_events_total{session=\"a\",user=\"%u\"} 3\n",
		 getuid());
	assert_has(during, line);
	assert_has(during, "traced_up 1\n");
	assert_has(during, "traced_sessions 1\n");
	assert_int_equal(stat(d->manager->config.metrics, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	feed();
	turn(d, 20);
	stop_ok(d, &c, "a");
	turn(d, 5);
	after = contents(d);
	assert_has(after, line);
	snprintf(line, sizeof(line), "traced_session_recording{session=\"a\",user=\"%u\"} 0\n",
		 getuid());
	assert_has(after, line);
	snprintf(line, sizeof(line), "traced_session_spool_bytes{session=\"a\",user=\"%u\"} 0\n",
		 getuid());
	assert_has(after, line);
	assert_has(after, "traced_sessions 0\n");
	assert_has(after, "traced_sessions_total 1\n");
	assert_has(after, "traced_events_total 3\n");
	client_close(&c);
	end_daemon(d);
}

/* Prometheus refuses a file that has a series twice. */
static void a_name_that_is_used_again_has_one_row(void **state)
{
	struct daemon *d = *state;
	_cleanup_free_ char *text = NULL;
	struct client c;

	use_file(d, "traced.prom");
	greet(d, &c);
	for (unsigned i = 0; i < 3; i++) {
		start_ok(d, &c, "again", false);
		stop_ok(d, &c, "again");
		turn(d, 5);
	}
	start_ok(d, &c, "again", false);
	text = fresh_contents(d);
	assert_int_equal(occurrences(text, "traced_session_events_total{"), 1);
	assert_has(text, "traced_sessions_total 4\n");
	assert_has(text, "traced_events_total 12\n");
	client_close(&c);
	end_daemon(d);
}

static void those_gone_are_bounded(void **state)
{
	struct daemon *d = *state;
	_cleanup_free_ char *text = NULL;
	struct client c;
	char name[16];

	use_file(d, "traced.prom");
	greet(d, &c);
	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		start_ok(d, &c, name, false);
		stop_ok(d, &c, name);
		turn(d, 1);
	}
	text = fresh_contents(d);
	assert_int_equal(occurrences(text, "traced_session_events_total{"), 32);
	assert_non_null(strstr(text, "session=\"s39\""));
	assert_null(strstr(text, "session=\"s7\""));
	assert_has(text, "traced_sessions_total 40\n");
	assert_has(text, "traced_events_total 120\n");
	client_close(&c);
	end_daemon(d);
}

/* Each name in the text has its HELP and TYPE before it, once. */
static void the_format_is_prometheus(void **state)
{
	struct daemon *d = *state;
	_cleanup_free_ char *text = NULL;
	char *line, *rest, name[64] = "", head[128];
	struct client c;

	use_file(d, "traced.prom");
	greet(d, &c);
	start_ok(d, &c, "a", false);
	text = fresh_contents(d);
	assert_int_equal(text[strlen(text) - 1], '\n');
	rest = text;
	while ((line = strsep(&rest, "\n")) && *line) {
		size_t len = strcspn(line, "{ ");

		if (sscanf(line, "# HELP %63s ", name) == 1) {
			snprintf(head, sizeof(head), "# TYPE %s ", name);
			line = strsep(&rest, "\n");
			assert_int_equal(strncmp(line, head, strlen(head)), 0);
			line += strlen(head);
			assert_true(strcmp(line, "counter") == 0 || strcmp(line, "gauge") == 0);
			len = strlen(name);
			assert_int_equal(strcmp(line, "counter") == 0,
					 strcmp(name + len - MIN(len, 6u), "_total") == 0);
			continue;
		}
		assert_int_equal(len, strlen(name));
		assert_memory_equal(line, name, len);
	}
	client_close(&c);
	end_daemon(d);
}

static void an_idle_daemon_writes_nothing(void **state)
{
	struct daemon *d = *state;
	_cleanup_free_ char *text = NULL;
	struct client c;

	use_file(d, "traced.prom");
	greet(d, &c);
	start_ok(d, &c, "a", false);
	stop_ok(d, &c, "a");
	turn(d, 5);
	remove_file(d);
	d->manager->metrics.written_ns -= 60 * NSEC_PER_SEC;
	turn(d, 50);
	assert_null(contents(d));
	/* A recording daemon writes it, but not in each turn of its loop. */
	start_ok(d, &c, "b", false);
	remove_file(d);
	feed();
	turn(d, 10);
	assert_null(contents(d));
	d->manager->metrics.written_ns -= 60 * NSEC_PER_SEC;
	feed();
	turn_until(d, access(d->manager->config.metrics, F_OK) == 0);
	text = contents(d);
	assert_has(text, "traced_up 1\n");
	client_close(&c);
	end_daemon(d);
}

static void a_file_that_cannot_be_harms_nobody(void **state)
{
	struct daemon *d = *state;
	struct client c;

	use_file(d, "missing/traced.prom");
	greet(d, &c);
	start_ok(d, &c, "a", false);
	stop_ok(d, &c, "a");
	assert_null(contents(d));
	client_close(&c);
}

static void what_was_in_its_way_is_replaced_not_followed(void **state)
{
	struct daemon *d = *state;
	_cleanup_free_ char *victim = NULL, *temp = NULL, *text = NULL;
	struct client c;
	struct stat st;
	int fd;

	use_file(d, "traced.prom");
	assert_true(asprintf(&victim, "%s/victim", d->dir) > 0);
	assert_true(asprintf(&temp, "%s.new", d->manager->config.metrics) > 0);
	fd = open(victim, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symlink(victim, temp), 0);
	assert_int_equal(symlink(victim, d->manager->config.metrics), 0);
	greet(d, &c);
	start_ok(d, &c, "a", false);
	text = contents(d);
	assert_has(text, "traced_up 1\n");
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(access(temp, F_OK), -1);
	client_close(&c);
	end_daemon(d);
	unlink(victim);
}

static void at_its_end_the_daemon_is_down(void **state)
{
	struct daemon *d = *state;
	_cleanup_free_ char *path = NULL;
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct client c;

	use_file(d, "traced.prom");
	path = strdup(d->manager->config.metrics);
	greet(d, &c);
	start_ok(d, &c, "a", false);
	stop_ok(d, &c, "a");
	client_close(&c);
	turn(d, 5);
	d->manager = manager_free(d->manager);
	assert_int_equal(read_file_at(AT_FDCWD, path, 1 << 20, &text), 0);
	assert_has(buf_string(&text), "traced_up 0\n");
	assert_has(text.data, "traced_sessions_total 1\n");
	assert_has(text.data, "traced_resident_memory_bytes 0\n");
	unlink(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SERVICE_TEST(a_session_is_told_of_while_it_records_and_after),
		SERVICE_TEST(a_name_that_is_used_again_has_one_row),
		SERVICE_TEST(those_gone_are_bounded),
		SERVICE_TEST(the_format_is_prometheus),
		SERVICE_TEST(an_idle_daemon_writes_nothing),
		SERVICE_TEST(a_file_that_cannot_be_harms_nobody),
		SERVICE_TEST(what_was_in_its_way_is_replaced_not_followed),
		SERVICE_TEST(at_its_end_the_daemon_is_down),
	};
	int r = service_test_begin(argc, argv);

	return r >= 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
