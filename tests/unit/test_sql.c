/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SQL by libtracefs in its confined process, and the formats of events that do not exist yet. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/caret.h"
#include "cli/sql/sql.h"

#define COMMON                                                                                     \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define JOIN " FROM sched_waking AS start JOIN sched_switch AS end ON start.pid = end.next_pid"

static const struct sql_format formats[] = {
	{ (char *)"sched", (char *)"name: sched_waking\nID: 300\nformat:\n" COMMON
				   "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
				   "\tfield:int prio;\toffset:12;\tsize:4;\tsigned:1;\n\n"
				   "print fmt: \"%d\", REC->pid\n" },
	{ (char *)"sched", (char *)"name: sched_switch\nID: 301\nformat:\n" COMMON
				   "\tfield:char next_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
				   "\tfield:pid_t next_pid;\toffset:24;\tsize:4;\tsigned:1;\n\n"
				   "print fmt: \"%d\", REC->next_pid\n" },
};

static int parse(const char *sql, struct buf *out, struct error *err)
{
	return sql_parse("wakeup", sql, false, formats, ARRAY_SIZE(formats), out, err);
}

#if HAVE_LIBTRACEFS

static void sql_becomes_commands(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r = parse("SELECT start.pid, (end.TIMESTAMP_USECS - start.TIMESTAMP_USECS) AS lat" JOIN
		      " WHERE start.prio < 100 && end.next_comm ~ \"it's *\"",
		      &out, &err);

	/* Without a mount libtracefs makes no text, and says so. */
	if (r == -ENOENT) {
		assert_non_null(strstr(err.hint, "mount -t tracefs"));
		return;
	}
	assert_int_equal(r, 0);
	assert_non_null(buf_string(&out));
	assert_non_null(strstr(out.data, "wakeup pid_t pid; u64 lat;' >> "));
	assert_non_null(strstr(out.data, "echo 'hist:keys=pid:"));
	assert_non_null(strstr(out.data, " if prio < 100' >> "));
	assert_non_null(strstr(out.data, ":onmatch(sched.sched_waking)."));
	assert_non_null(strstr(out.data, " if next_comm~\"it's *\"' >> "));
}

/* The mount of traced may be attached nowhere. */
static void sql_needs_no_mounted_tracefs(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;
	int status;
	pid_t pid;

	if (geteuid() != 0 || access("/sys/kernel/tracing", F_OK) < 0)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(77);
		while (umount2("/sys/kernel/tracing", MNT_DETACH) == 0)
			;
		while (umount2("/sys/kernel/debug", MNT_DETACH) == 0)
			;
		_exit(parse("SELECT start.pid" JOIN, &out, &err) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

static void errors_have_a_caret(void **state _unused_)
{
	static const struct {
		const char *sql, *says, *place;
	} table[] = {
		{ "SELECT x FROM y", "event not found", "\n  SELECT x FROM y\n" },
		{ "SELECT start.pip" JOIN, "Field 'pip' not part of event sched_waking",
		  "start.pip" },
		{ "SELECT", "syntax error", "\n  SELECT\n" },
		{ "", "syntax error", "\n  \n  ^" },
		{ "'\"`", "syntax error", "\n  '\"`\n" },
		{ "SELECT a FROM b WHERE c ~ \"x", "a quote has no end",
		  "\n  SELECT a FROM b WHERE c ~ \"x\n                            ^" },
		{ "SELECT pid FROM sched_waking", "needs a second event", "FROM sched_waking\n" },
		{ "SELECT start.pid" JOIN " WHERE start.prio = 0 or 1", "syntax error", " or 1\n" },
		{ "SELECT start.pid, strat.prio" JOIN, "FROM and JOIN have no such event",
		  "\n  SELECT start.pid, strat.prio FROM sched_waking AS start " },
		{ "SELECT (end.TIMESTAMP - strat.TIMESTAMP) AS lat" JOIN,
		  "FROM and JOIN have no such event", "strat.TIMESTAMP) AS lat" },
		{ "SELECT prio" JOIN, "needs its event", "\n  SELECT prio FROM" },
		{ "SELECT COMMON_TIMESTAMP FROM sched_waking", "there is no such field",
		  "\n  SELECT COMMON_TIMESTAMP FROM sched_waking\n         ^" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_buf_ struct buf out = BUF_INIT;

		assert_int_equal(parse(table[i].sql, &out, &err), -EINVAL);
		if (!strstr(err.message, table[i].says) || !strstr(err.message, table[i].place) ||
		    err.message[strlen(err.message) - 1] != '^' || !err.hint)
			fail_msg("'%s': %s", table[i].sql, err.message);
	}
}

/* libtracefs before 1.8 gets what these words stand for. */
static void deltas_are_differences(void **state _unused_)
{
	static const struct {
		const char *sql, *whole;
	} table[] = {
		{ "SELECT start.pid, TIMESTAMP_DELTA_USECS AS lat" JOIN,
		  "SELECT start.pid, (end.TIMESTAMP_USECS - start.TIMESTAMP_USECS) AS lat" JOIN },
		{ "select TIMESTAMP_DELTA as a,TIMESTAMP_DELTA_USECS as b from x join y.z on x.a = "
		  "y.z.b",
		  "select (y.z.TIMESTAMP - x.TIMESTAMP) as a,(y.z.TIMESTAMP_USECS - "
		  "x.TIMESTAMP_USECS) as b from x join y.z on x.a = y.z.b" },
		{ "SELECT TIMESTAMP_DELTA AS a FROM x s JOIN y e ON s.a = e.a",
		  "SELECT (e.TIMESTAMP - s.TIMESTAMP) AS a FROM x s JOIN y e ON s.a = e.a" },
		{ "SELECT s.MY_TIMESTAMP_DELTA, s.TIMESTAMP_DELTAS FROM x s JOIN y e",
		  "SELECT s.MY_TIMESTAMP_DELTA, s.TIMESTAMP_DELTAS FROM x s JOIN y e" },
		{ "SELECT TIMESTAMP_DELTA FROM x", "SELECT TIMESTAMP_DELTA FROM x" },
		{ "TIMESTAMP_DELTA FROM x JOIN", "TIMESTAMP_DELTA FROM x JOIN" },
		{ "TIMESTAMP_DELTA FROM  JOIN ", "TIMESTAMP_DELTA FROM  JOIN " },
		{ "SELECT a FROM x JOIN y WHERE y.b ~ \" TIMESTAMP_DELTA \"",
		  "SELECT a FROM x JOIN y WHERE y.b ~ \" TIMESTAMP_DELTA \"" },
	};
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_(sql_translation_deinit) struct sql_translation t = { 0 };

		assert_int_equal(sql_translate(table[i].sql, &t), 0);
		assert_string_equal(t.sql.data, table[i].whole);
	}
	r = parse(table[0].sql, &out, &err);
	if (r == -ENOENT)
		return;
	assert_int_equal(r, 0);
	assert_non_null(strstr(buf_string(&out), "wakeup pid_t pid; u64 lat;' >> "));
	assert_non_null(strstr(out.data, "common_timestamp.usecs-$"));
}

/* libtracefs has neither single quotes nor numbers below 0 and beyond LONG_MAX. */
static void conditions_keep_their_meaning(void **state _unused_)
{
	static const struct {
		const char *where, *filter;
	} table[] = {
		{ "start.prio > -1", " if prio > -1'" },
		{ "start.prio>=-0x10 && start.pid != 5", " if prio >= -0x10&&(pid != 5)'" },
		{ "!(start.prio = -1 || start.prio & -4)", " if !(prio == -1||prio & -4)'" },
		{ "start.prio < 0xffffffff81000000", " if prio < 0xffffffff81000000'" },
		{ "start.prio < 18446744073709551615", " if prio < 18446744073709551615'" },
		{ "start.prio < -9223372036854775808", " if prio < -9223372036854775808'" },
		{ "start.prio < 0x10", " if prio < 16'" },
		{ "end.next_comm = 'a'", " if next_comm == \"a\"'" },
		{ "end.next_comm ~ '*it''s -1 && ''*'", " if next_comm~\"*it's -1 && '*\"'" },
		{ "end.next_comm != ''", " if next_comm != \"\"'" },
		{ "end.next_comm != \"'' > -1\"", " if next_comm != \"'' > -1\"'" },
		{ "end.next_comm = '-1' && start.prio > -1", " if prio > -1'" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_buf_ struct buf out = BUF_INIT;
		char sql[512];
		int r;

		snprintf(sql, sizeof(sql), "SELECT start.pid" JOIN " WHERE %s", table[i].where);
		assert_int_equal(sql_check_text(sql, "x", &err), 0);
		r = parse(sql, &out, &err);
		if (r == -ENOENT)
			return;
		if (r < 0 || !strstr(buf_string(&out), table[i].filter))
			fail_msg("%s: %s", table[i].where, r < 0 ? err.message : out.data);
	}
}

/* Places of errors are those of the typed SQL, whatever libtracefs got. */
static void places_are_of_the_typed_sql(void **state _unused_)
{
	static const char *const table[] = {
		"SELECT TIMESTAMP_DELTA AS lat, start.pid" JOIN " WHERE start.prio > -1 or 1",
		"SELECT start.pid" JOIN " WHERE end.next_comm = 'it''s' or 1",
		"SELECT start.pid" JOIN " WHERE start.prio = 0xffffffff81000000 or 1",
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_buf_ struct buf out = BUF_INIT, place = BUF_INIT;
		_cleanup_error_ struct error err = ERROR_INIT;

		assert_int_equal(parse(table[i], &out, &err), -EINVAL);
		buf_put_caret(&place, table[i], strstr(table[i], "or 1"));
		if (!strstr(err.message, buf_string(&place)))
			fail_msg("%s", err.message);
	}
}

/* Whatever libtracefs does with it, one request fails, with a short message. */
static void hostile_sql_costs_one_request(void **state _unused_)
{
	static const char *const pieces[] = { "(",
					      "!",
					      "SELECT ",
					      "a,",
					      "\"",
					      "a=b&&",
					      "start.pid.",
					      "CAST(a AS ",
					      "%s%n",
					      "\\",
					      "0x99999999999999999",
					      "a AS a," };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(pieces); i++) {
		_cleanup_buf_ struct buf sql = BUF_INIT, out = BUF_INIT;
		_cleanup_error_ struct error err = ERROR_INIT;

		if (i >= ARRAY_SIZE(pieces))
			buf_puts(&sql, "SELECT start.pid" JOIN " WHERE ");
		while (sql.len < 3800)
			buf_puts(&sql, pieces[i % ARRAY_SIZE(pieces)]);
		assert_non_null(buf_string(&sql));
		assert_true(parse(sql.data, &out, &err) < 0);
		assert_true(strlen(err.message) < 1000);
	}
}

static void formats_of_probes_and_sql_are_understood(void **state _unused_)
{
	char *name, *text = sql_format_of_probe("p:opened vfs_open path=%di n=+8(%si):u32 "
						"s=+0(%dx):string file->x",
						&name);
	struct sql_format own[] = {
		{ (char *)SQL_OWN_SYSTEM, text },
		{ (char *)SQL_OWN_SYSTEM,
		  sql_format_of_fields("first", "pid_t pid; char comm[16]; char x[]; s64 lat;") },
	};
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r;

	assert_non_null(own[0].text);
	assert_non_null(own[1].text);
	assert_string_equal(name, "opened");
	r = sql_parse("b",
		      "SELECT start.comm, end.n, end.s, start.x, end.path, start.lat "
		      "FROM first AS start JOIN opened AS end ON start.pid = end.common_pid",
		      false, own, 2, &out, &err);
	if (r != -ENOENT) {
		assert_int_equal(r, 0);
		assert_non_null(buf_string(&out));
		assert_non_null(strstr(out.data, "b char comm[16]; u32 n; char s[]; char x[]; "));
		assert_non_null(strstr(out.data, sizeof(long) == 8 ? "u64 path; s64 lat;"
								   : "u32 path; s64 lat;"));
		assert_non_null(strstr(out.data, "events/own/first/trigger"));
	}
	free(name);
	free(own[0].text);
	free(own[1].text);
	/* Its name would be made up by the daemon. */
	assert_null(sql_format_of_probe("vfs_open", &name));
	assert_null(name);
	assert_null(sql_format_of_probe("p vfs_open a=%di:u8", &name));
}

static void sql_of_one_event_is_a_histogram(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r = sql_parse("none",
			  "SELECT CAST(common_pid AS comm), pid, CAST(prio AS _COUNTER_) "
			  "FROM sched_waking WHERE prio < 100 || pid = 1",
			  true, formats, ARRAY_SIZE(formats), &out, &err);

	if (r == -ENOENT)
		return;
	assert_int_equal(r, 0);
	assert_non_null(buf_string(&out));
	assert_non_null(strstr(out.data,
			       "echo 'hist:keys=common_pid.execname,pid:vals=prio if prio "
			       "< 100"));
	assert_non_null(strstr(out.data, "' > "));
	assert_non_null(strstr(out.data, "/events/sched/sched_waking/trigger\n"));
}

#else

static void without_libtracefs_it_is_refused(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;

	assert_int_equal(parse("SELECT start.pid" JOIN, &out, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "libtracefs"));
	assert_non_null(strstr(err.hint, "-Dlibtracefs=enabled"));
}

#endif

static Traced__Control__SqlSide wakeup_end = {
	.variables =
		(char *)"__pid_1=$__arg1,__comm_2=next_comm,__lat_3=common_timestamp.usecs-$__arg2,"
			"__ns_4=common_timestamp-$__arg3",
};
static const Traced__Control__Sql wakeup = {
	.name = (char *)"wakeup",
	.fields = (char *)"pid_t pid; char comm[16]; u64 lat;",
	.arguments = (char *)"__pid_1,__comm_2,__lat_3",
	.end = &wakeup_end,
};

static void assert_hist(const struct options *o, const Traced__Control__Sql *sql,
			const char *expected)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;

	if (sql_hist_of_sql(o, sql, &out, &err) < 0)
		fail_msg("%s", err.message);
	assert_string_equal(buf_string(&out), expected);
}

/* A field beside its differences is no field that is selected twice. */
static void a_field_is_selected_twice(void **state _unused_)
{
	static const struct {
		const char *list;
		int code;
	} cases[] = {
		{ "end.TIMESTAMP - start.TIMESTAMP AS ns, end.TIMESTAMP AS at", 0 },
		{ "(end.TIMESTAMP - start.TIMESTAMP) AS ns, end.TIMESTAMP AS at", 0 },
		{ "end.a - start.a AS x, end.a + start.a AS y", 0 },
		{ "start.pid, (start.pid) AS b", -EINVAL },
		{ "start.pid, end.pid, start.pid AS b", -EINVAL },
		{ "CAST(pid AS hex), CAST( (pid) AS comm)", -EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		char sql[256];

		snprintf(sql, sizeof(sql), "SELECT %s" JOIN, cases[i].list);
		assert_int_equal(sql_check_text(sql, "x", &err), cases[i].code);
		if (cases[i].code)
			assert_non_null(strstr(err.message, "selected twice"));
	}
}

/* libtracefs would take the digits that it understands. */
static void numbers_are_whole(void **state _unused_)
{
	static const struct {
		const char *number;
		int code;
	} cases[] = {
		{ "0", 0 },
		{ "100", 0 },
		{ "010", 0 },
		{ "0x1F", 0 },
		{ "2147483647", 0 },
		{ "1e3", -EINVAL },
		{ "10a", -EINVAL },
		{ "09", -EINVAL },
		{ "0x", -EINVAL },
		{ "-1", 0 },
		{ "0xffffffff81000000", 0 },
		{ "18446744073709551615", 0 },
		{ "18446744073709551616", -EINVAL },
		{ "-9223372036854775808", 0 },
		{ "-9223372036854775809", -EINVAL },
		{ "-1e3", -EINVAL },
		{ "'1e3'", 0 },
		{ "\"1e3\"", 0 },
		{ "a1e3", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		char sql[256];

		snprintf(sql, sizeof(sql), "SELECT a FROM b WHERE c > %s", cases[i].number);
		assert_int_equal(sql_check_text(sql, "x", &err), cases[i].code);
		if (cases[i].code)
			assert_non_null(
				strstr(err.message, cases[i].number[0] == '-'
							    ? "\n                             ^"
							    : "\n                            ^"));
	}
}

/* libtracefs would make another event of it. */
static void other_meanings_are_refused(void **state _unused_)
{
	static const struct {
		const char *sql, *at; /* at NULL: it is taken */
	} cases[] = {
		{ "SELECT a FROM b WHERE c > 1 && d > 2 || e > 3", "|| e" },
		{ "SELECT a FROM b WHERE c > 1 || d > 2 && e > 3", "&& e" },
		{ "SELECT a FROM b WHERE !(c > 1 || d > 2 && e > 3)", "&& e" },
		{ "SELECT a FROM b WHERE (c > 1 && d > 2) || e > 3", NULL },
		{ "SELECT a FROM b WHERE c > 1 && (d > 2 || e > 3) && f > 4", NULL },
		{ "SELECT a FROM b WHERE (c > 1 || d > 2) && (e > 3 || !(f > 4))", NULL },
		{ "SELECT a FROM b WHERE c ~ \"&&\" || d > 2", NULL },
		{ "SELECT start.pid, (start.prio - end.next_prio) AS d" JOIN, "start.prio" },
		{ "SELECT (start.TIMESTAMP - end.TIMESTAMP) AS d" JOIN, "start.TIMESTAMP" },
		{ "SELECT (start.prio + end.next_prio) AS d" JOIN, "start.prio" },
		{ "SELECT (end.next_pid - end.next_prio) AS d" JOIN, "end.next_pid" },
		{ "SELECT end.TIMESTAMP-start.TIMESTAMP AS d" JOIN, NULL },
		{ "SELECT (y.a + x.b) AS d FROM x JOIN y ON x.a = y.a", NULL },
		{ "SELECT (x.a - y.b) AS d FROM x JOIN y ON x.a = y.a", "x.a" },
		{ "SELECT a FROM b WHERE c = 'x && y' || d = 1", NULL },
		{ "SELECT a FROM b WHERE c = 'a \"b'", "\"b" },
		{ "SELECT a FROM b WHERE c = \"STACKTRACE\"", NULL },
		{ "SELECT start.pid, start.STACKTRACE AS stack" JOIN, "STACKTRACE" },
		{ "SELECT end.common_stacktrace, start.pid" JOIN, "common_stacktrace" },
		{ "SELECT STACKTRACE FROM sched_switch", "STACKTRACE" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_buf_ struct buf place = BUF_INIT;
		char sql[256];

		snprintf(sql, sizeof(sql), "%s", cases[i].sql);
		assert_int_equal(sql_check_text(sql, "x", &err), cases[i].at ? -EINVAL : 0);
		if (!cases[i].at)
			continue;
		buf_put_caret(&place, sql, strstr(sql, cases[i].at));
		assert_non_null(strstr(err.message, buf_string(&place)));
	}
}

static void an_unknown_field_is_found(void **state _unused_)
{
	const char *why;
	static const struct sql_format exec = {
		(char *)"sched",
		(char *)"name: sched_process_exec\nID: 302\nformat:\n" COMMON
			"\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n"
			"\tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n\n"
	};
	const char *sql = "SELECT filename, comm, CAST(nofield AS hex) FROM sched_process_exec";

	assert_ptr_equal(sql_find_unknown(sql, &exec, 1, &why), strstr(sql, "nofield"));
	assert_null(sql_find_unknown("SELECT filename, comm FROM x", &exec, 1, &why));
}

static void selected_fields_are_keys(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;
	Traced__Control__Sql many = wakeup;
	struct options o = { 0 };

	assert_hist(&o, &wakeup, "wakeup:keys=pid,comm,lat");
	o.lone_buckets = (struct key_option){ .modifier = "log2" };
	assert_hist(&o, &wakeup, "wakeup:keys=pid,comm,lat.log2");
	/* The time between the two is in microseconds. */
	o.lone_buckets = (struct key_option){ .modifier = "buckets=100000", .bucket_ns = 100000 };
	assert_hist(&o, &wakeup, "wakeup:keys=pid,comm,lat.buckets=100");
	o.lone_buckets.bucket_ns = 1500;
	assert_int_equal(sql_hist_of_sql(&o, &wakeup, &out, &err), -EINVAL);
	assert_non_null(strstr(err.message, "lat is in microseconds"));
	many.fields = (char *)"pid_t pid; char comm[16]; u64 lat; u64 ns;";
	assert_int_equal(sql_hist_of_sql(&o, &many, &out, &err), -EINVAL);
	assert_non_null(strstr(err.hint, "--key"));
}

static void fields_are_chosen(void **state _unused_)
{
	struct key_option keys[] = {
		{ "comm", NULL, 0 },
		{ "ns", "buckets=1000", 1000 },
	};
	struct options o = { .keys = keys,
			     .key_count = 2,
			     .entries = 300,
			     .lone_filter = "lat > 5",
			     .vals = { (const char *[]){ "lat" }, 1 } };
	Traced__Control__Sql ns = wakeup;

	ns.fields = (char *)"char comm[16]; u64 ns; u64 lat;";
	ns.arguments = (char *)"__comm_2,__ns_4,__lat_3";
	assert_hist(&o, &ns, "wakeup:keys=comm,ns.buckets=1000:vals=lat:size=300 if lat > 5");
}

static void one_events_fields_are_the_selected_ones(void **state _unused_)
{
	static const char fields[] = "keys=common_pid.execname,prio:vals=pid";
	struct options o = { .entries = 300, .lone_buckets = { .modifier = "log2" } };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf out = BUF_INIT;

	assert_int_equal(sql_hist_of_event(&o, "sched:sched_waking", fields, strlen(fields),
					   "prio < 5", &out, &err),
			 0);
	assert_string_equal(buf_string(&out),
			    "sched:sched_waking:keys=common_pid.execname,prio.log2:vals=pid:size="
			    "300 if prio < 5");
	out.len = 0;
	o = (struct options){ 0 };
	assert_int_equal(sql_hist_of_event(&o, ":wakeup", fields, 9, NULL, &out, &err), 0);
	assert_string_equal(buf_string(&out), "wakeup:keys=comm");
	o.lone_filter = "prio < 5";
	assert_int_equal(sql_hist_of_event(&o, ":wakeup", fields, 9, NULL, &out, &err), -EINVAL);
	assert_non_null(strstr(err.hint, "WHERE filters"));
}

static void casts_are_of_one_event(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(sql_check_casts("x", "SELECT a.cast, b.xcast AS CAST FROM cast", &err), 0);
	assert_int_equal(sql_check_casts("x", "SELECT a WHERE a.b == \"CAST(\"", &err), 0);
	assert_int_equal(sql_check_casts("x", "SELECT cast (a.b AS sym), c", &err), -EINVAL);
	assert_non_null(strstr(err.message, "\n  SELECT cast (a.b AS sym), c\n         ^"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#if HAVE_LIBTRACEFS
		cmocka_unit_test(sql_becomes_commands),
		cmocka_unit_test(sql_needs_no_mounted_tracefs),
		cmocka_unit_test(errors_have_a_caret),
		cmocka_unit_test(deltas_are_differences),
		cmocka_unit_test(conditions_keep_their_meaning),
		cmocka_unit_test(places_are_of_the_typed_sql),
		cmocka_unit_test(hostile_sql_costs_one_request),
		cmocka_unit_test(formats_of_probes_and_sql_are_understood),
		cmocka_unit_test(sql_of_one_event_is_a_histogram),
#else
		cmocka_unit_test(without_libtracefs_it_is_refused),
#endif
		cmocka_unit_test(a_field_is_selected_twice),
		cmocka_unit_test(numbers_are_whole),
		cmocka_unit_test(other_meanings_are_refused),
		cmocka_unit_test(an_unknown_field_is_found),
		cmocka_unit_test(selected_fields_are_keys),
		cmocka_unit_test(fields_are_chosen),
		cmocka_unit_test(one_events_fields_are_the_selected_ones),
		cmocka_unit_test(casts_are_of_one_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
