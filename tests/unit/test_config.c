/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/io.h"
#include "daemon/capture/capture.h"
#include "daemon/service/config.h"
#include "daemon/service/profiles.h"

struct files {
	char dir[64], main[80], folder[80];
};

static int files_setup(void **state)
{
	struct files *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->dir, "/tmp/traced-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->main, sizeof(f->main), "%s/traced.conf", f->dir);
	snprintf(f->folder, sizeof(f->folder), "%s/traced.conf.d", f->dir);
	*state = f;
	return 0;
}

static int files_teardown(void **state)
{
	struct files *f = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int load(struct files *f, struct config *c, struct buf *warnings, struct error *err)
{
	assert_int_equal(config_init(c), 0);
	return config_load(c, f->main, true, warnings, err);
}

static void later_files_win(void **state)
{
	struct files *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf warnings = BUF_INIT;
	_cleanup_config_ struct config c = { 0 };

	put(f->dir, "traced.conf",
	    "# a comment\n[daemon]\nspool_dir = /a ; a comment, too\nlog_level = debug\n"
	    "spare = yes\n"
	    "[limits]\nsessions = 3\nspool_max = 2G\n[defaults]\nevents = sched irq\n");
	mkdir(f->folder, 0755);
	put(f->folder, "20-b.conf", "[limits]\nsessions = 5\n");
	put(f->folder, "10-a.conf",
	    "[limits]\nsessions = 4\nspool_max = none\n"
	    "duration_max = 1h\n[defaults]\nevents = timer\nreader = read\n");
	put(f->folder, "30-c.conf.off", "[limits]\nsessions = 6\n");
	put(f->folder, ".hidden.conf", "[limits]\nsessions = 7\n");
	assert_int_equal(load(f, &c, &warnings, &err), 0);
	assert_string_equal(c.spool_dir, "/a");
	assert_int_equal(c.log_level, 7);
	assert_int_equal(c.spare, SPARE_YES);
	assert_int_equal(c.sessions, 5);
	assert_int_equal(c.spool_max, 0);
	assert_int_equal(c.duration_max, 3600 * NSEC_PER_SEC);
	assert_int_equal(c.reader, CAPTURE_READER_READ);
	assert_int_equal(c.events.count, 3);
	assert_string_equal(c.events.items[2], "timer");
	assert_int_equal(warnings.len, 0);
}

static void an_empty_list_starts_anew(void **state)
{
	struct files *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf warnings = BUF_INIT;
	_cleanup_config_ struct config c = { 0 };

	put(f->dir, "traced.conf",
	    "[defaults]\nevents = sched,\n  irq\nevents =\nevents = block:*\n");
	assert_int_equal(load(f, &c, &warnings, &err), 0);
	assert_int_equal(c.events.count, 1);
	assert_string_equal(c.events.items[0], "block:*");
}

static void users_have_a_section(void **state)
{
	struct files *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf warnings = BUF_INIT;
	_cleanup_config_ struct config c = { 0 };
	struct statvfs fs;

	assert_int_equal(config_init(&c), 0);
	assert_int_equal(c.users.functions, USER_FUNCTIONS_OWN);
	assert_false(user_list_has(&c.users.raw_addresses, 1000) || c.users.top_level);
	assert_int_equal(c.spare, SPARE_AUTO);
	assert_true(c.users.buffer_memory > 0);
	config_deinit(&c);
	/* A part of what is free, also if its folder is not there yet. */
	put(f->dir, "traced.conf", "[daemon]\nspool_dir = /tmp/none/there\n");
	assert_int_equal(load(f, &c, &warnings, &err), 0);
	assert_int_equal(statvfs("/tmp", &fs), 0);
	assert_in_range(c.users.spool_max, 16 << 20,
			MAX((uint64_t)fs.f_blocks * fs.f_frsize / 8, (uint64_t)16 << 20));
	config_deinit(&c);
	put(f->dir, "traced.conf", "[users]\nspool_max = none\n");
	assert_int_equal(load(f, &c, &warnings, &err), 0);
	assert_int_equal(c.users.spool_max, 0);
	config_deinit(&c);
	put(f->dir, "traced.conf",
	    "[users]\nclients = 2\nsessions = 3\nbuffer_memory = 64M\nspool_max = 1G\n"
	    "duration_max = 5m\nraw_addresses = yes\ntop_level = yes\nfunctions = no\n"
	    "events_allowed = sched irq\nevents_denied = sched:sched_process_exec, kvm\n"
	    "[limits]\nsessions = 9\n");
	assert_int_equal(load(f, &c, &warnings, &err), 0);
	assert_int_equal(c.users.clients, 2);
	assert_int_equal(c.users.sessions, 3);
	assert_int_equal(c.sessions, 9);
	assert_int_equal(c.users.buffer_memory, 64 << 20);
	assert_int_equal(c.users.spool_max, 1 << 30);
	assert_int_equal(c.users.duration_max, 300 * NSEC_PER_SEC);
	assert_true(user_list_has(&c.users.raw_addresses, 1000) && c.users.top_level);
	assert_int_equal(c.users.functions, USER_FUNCTIONS_NO);
	assert_int_equal(c.users.events_allowed.count, 2);
	assert_string_equal(c.users.events_denied.items[1], "kvm");
	assert_int_equal(warnings.len, 0);
}

/* Each assignment replaces the earlier one: nobody stays by an oversight. */
static void addresses_may_be_for_some_users(void **state)
{
	static const struct {
		const char *text;
		bool user, other;
	} cases[] = {
		{ "raw_addresses = root 1000", true, false },
		{ "raw_addresses = 1000,1001", true, true },
		{ "raw_addresses = 1000\nraw_addresses = 1001", false, true },
		{ "raw_addresses = yes\nraw_addresses = 1001", false, true },
		{ "raw_addresses = 1000\nraw_addresses = no", false, false },
		{ "raw_addresses = 1000\nraw_addresses = yes", true, true },
	};
	struct files *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_buf_ struct buf warnings = BUF_INIT;
		_cleanup_config_ struct config c = { 0 };
		char text[200];

		snprintf(text, sizeof(text), "[users]\n%s\n", cases[i].text);
		put(f->dir, "traced.conf", text);
		assert_int_equal(load(f, &c, &warnings, &err), 0);
		assert_int_equal(user_list_has(&c.users.raw_addresses, 1000), cases[i].user);
		assert_int_equal(user_list_has(&c.users.raw_addresses, 1001), cases[i].other);
	}
}

static void an_absent_file_is_empty_unless_named(void **state)
{
	struct files *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf warnings = BUF_INIT;
	_cleanup_config_ struct config c = { 0 };

	assert_int_equal(config_init(&c), 0);
	assert_int_equal(config_load(&c, f->main, false, &warnings, &err), 0);
	assert_int_equal(config_load(&c, f->main, true, &warnings, &err), -ENOENT);
	assert_non_null(strstr(err.message, f->main));
}

static void unknown_names_are_warnings(void **state)
{
	struct files *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf warnings = BUF_INIT;
	_cleanup_config_ struct config c = { 0 };
	const char *text;

	put(f->dir, "traced.conf",
	    "[limits]\n\nsesions = 3\nclock = mono\n[limit]\nsessions = 4\n[other]\nx = 1\n");
	assert_int_equal(load(f, &c, &warnings, &err), 0);
	text = buf_string(&warnings);
	assert_non_null(strstr(text, "traced.conf:3: unknown key \"sesions\" in [limits]"));
	assert_non_null(strstr(text, "did you mean \"sessions\"?"));
	assert_non_null(strstr(text, "traced.conf:4: \"clock\" belongs in [defaults]"));
	assert_non_null(strstr(text, "traced.conf:6: \"sessions\" belongs in [limits]"));
	assert_non_null(strstr(text, "traced.conf:8: unknown section [other]"));
	assert_int_equal(c.sessions, 16);
}

static void bad_values_name_file_and_line(void **state)
{
	static const struct {
		const char *text, *where;
	} bad[] = {
		{ "[limits]\nsessions = many\n", "traced.conf:2: sessions: " },
		{ "[limits]\n\n\nclients = 0\n", "traced.conf:4: clients: " },
		{ "[limits]\nclients = -1\n", "traced.conf:2: clients: " },
		{ "[limits]\nspool_max = 3 apples\n", "traced.conf:2: spool_max: " },
		{ "[limits]\nspool_max = 500\n", "traced.conf:2: spool_max: " },
		{ "[limits]\nmin_free = 64\n", "traced.conf:2: min_free: " },
		{ "[limits]\nspool_max = 500.5\n", "traced.conf:2: spool_max: " },
		{ "[limits]\nduration_max = soon\n", "traced.conf:2: duration_max: " },
		{ "[daemon]\nsocket = run/sock\n", "traced.conf:2: socket: " },
		{ "[daemon]\nlog_level = loud\n", "traced.conf:2: log_level: " },
		{ "[daemon]\nspare = 1\n", "traced.conf:2: spare: " },
		{ "[defaults]\nclock = two words\n", "traced.conf:2: clock: " },
		{ "[defaults]\nreader = telepathy\n", "traced.conf:2: reader: " },
		{ "[defaults]\nbuffer_size = 0\n", "traced.conf:2: buffer_size: " },
		{ "[defaults]\nbuffer_size = 4\n", "traced.conf:2: buffer_size: " },
		{ "[users]\nfunctions = mine\n", "traced.conf:2: functions: " },
		{ "[users]\nraw_addresses = maybe\n", "traced.conf:2: raw_addresses: there is no" },
		{ "[users]\nraw_addresses = root yes\n", "traced.conf:2: raw_addresses: " },
		{ "[users]\nraw_addresses = 4294967295\n", "traced.conf:2: raw_addresses: " },
		{ "[users]\nraw_addresses = 10x\n", "traced.conf:2: raw_addresses: " },
		{ "[users]\nraw_addresses =\n", "traced.conf:2: raw_addresses: " },
		{ "[daemon\n", "traced.conf:1: " },
		{ "[daemon]\nsocket\n", "traced.conf:2: " },
	};
	struct files *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_buf_ struct buf warnings = BUF_INIT;
		_cleanup_config_ struct config c = { 0 };

		put(f->dir, "traced.conf", bad[i].text);
		assert_int_equal(load(f, &c, &warnings, &err), -EINVAL);
		if (!strstr(err.message, bad[i].where))
			fail_msg("\"%s\" is not in \"%s\"", bad[i].where, err.message);
	}
}

static void a_line_without_end_is_refused(void **state)
{
	struct files *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf warnings = BUF_INIT;
	_cleanup_config_ struct config c = { 0 };
	char *text = malloc(20000);

	assert_non_null(text);
	memset(text, 'x', 19999);
	text[19999] = '\0';
	memcpy(text, "[daemon]\nsocket = /", 19);
	put(f->dir, "traced.conf", text);
	assert_int_equal(load(f, &c, &warnings, &err), -EINVAL);
	assert_non_null(strstr(err.message, "traced.conf:2: "));
	free(text);
}

static void profiles_hide_and_tell(void **state)
{
	struct files *f = *state;
	char first[80], second[80];
	const char *const dirs[] = { first, second, NULL };
	_cleanup_(string_list_deinit) struct string_list names = { 0 };
	_cleanup_(profile_freep) struct profile *p = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;

	snprintf(first, sizeof(first), "%s/1", f->dir);
	snprintf(second, sizeof(second), "%s/2", f->dir);
	mkdir(first, 0755);
	mkdir(second, 0755);
	put(first, "io.profile",
	    "[profile]\nsummary = mine\nevents = block:*\noptional = nvme:*\n");
	put(second, "io.profile", "[profile]\nsummary = theirs\nevents = x\n");
	put(second, "irq.profile", "[profile]\nsummary = s\nevents = irq:*,\n  ipi:*\n");
	put(second, "bad.profile", "[profile]\nevent = irq\n");
	put(second, "README", "no profile");
	assert_int_equal(profile_names(&names, dirs), 0);
	assert_int_equal(names.count, 3);
	assert_string_equal(names.items[0], "bad");
	assert_string_equal(names.items[1], "io");
	assert_int_equal(profile_load(&p, dirs, "io", &err), 0);
	assert_string_equal(p->summary, "mine");
	assert_string_equal(p->optional.items[0], "nvme:*");
	p = profile_free(p);
	assert_int_equal(profile_load(&p, dirs, "irq", &err), 0);
	assert_int_equal(p->events.count, 2);
	p = profile_free(p);
	assert_int_equal(profile_load(&p, dirs, "bad", &err), -EINVAL);
	assert_non_null(strstr(err.message, "bad.profile:2"));
	assert_int_equal(profile_load(&p, dirs, "irg", &err), -ENOENT);
	assert_non_null(strstr(err.hint, "\"irq\""));
	assert_int_equal(profile_load(&p, dirs, "../2/irq", &err), -ENOENT);
	assert_null(p);
}

static void shipped_profiles_load(void **state _unused_)
{
	const char *const dirs[] = { SHIPPED_PROFILES, NULL };
	_cleanup_(string_list_deinit) struct string_list names = { 0 };

	assert_int_equal(profile_names(&names, dirs), 0);
	assert_in_range(names.count, 6, 100);
	for (size_t i = 0; i < names.count; i++) {
		_cleanup_(profile_freep) struct profile *p = NULL;
		_cleanup_error_ struct error err = ERROR_INIT;

		if (profile_load(&p, dirs, names.items[i], &err) < 0)
			fail_msg("%s", err.message);
		assert_non_null(p->summary);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_setup, files_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(later_files_win),
		TEST(an_empty_list_starts_anew),
		TEST(users_have_a_section),
		TEST(addresses_may_be_for_some_users),
		TEST(an_absent_file_is_empty_unless_named),
		TEST(unknown_names_are_warnings),
		TEST(bad_values_name_file_and_line),
		TEST(a_line_without_end_is_refused),
		TEST(profiles_hide_and_tell),
		cmocka_unit_test(shipped_profiles_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
