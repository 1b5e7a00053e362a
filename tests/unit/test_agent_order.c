/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Orders: what is parsed, and what this board would do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sodium.h>
#include <string.h>

#include "agent/judge.h"
#include "agent/recorder.h"
#include "base/io.h"
#include "fleet/keys.h"

/* 2026-11-28T12:00:00Z */
#define NOW UINT64_C(1795867200)
#define EXPIRES "expires = 2026-11-28T13:00:00Z\n"
#define HEAD "[order]\nserial = 7\nfleet = doors\n" EXPIRES
#define USUAL HEAD "duration = 10s\nevents = sched:sched_switch\nreports = sched\n"

#define ALL USUAL "capture = yes\nsql = SELECT 1\nas = x\nhist = x:keys=y\nuntil = irq.max > 1s\n"

static int parse(struct order *o, const char *text)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	int r = order_parse(o, text, strlen(text), &err);

	assert_true(r == 0 || (r < 0 && err.message));
	return r;
}

static void refuses(const char *text)
{
	struct order o = { 0 };

	if (parse(&o, text) == 0)
		fail_msg("accepted: %s", text);
	assert_null(o.fleet);
}

static void takes_all_keys(void **state _unused_)
{
	_cleanup_order_ struct order o = { 0 };

	assert_int_equal(parse(&o,
			       "# canary\n" HEAD
			       "group = canary\nnot_before = 2026-11-28T12:00:00Z\nshare = 0.25\n"
			       "salt = autumn\nlabels = arch=x86_64 type=door*\nwindow = 10m\n"
			       "duration = 1.5s\nevents = sched:sched_switch\n  irq:*\n"
			       "reports = sched, irq\ncapture = yes\n"),
			 0);
	assert_int_equal(o.serial, 7);
	assert_string_equal(o.fleet, "doors");
	assert_int_equal(o.not_before, NOW);
	assert_int_equal(o.expires, NOW + 3600);
	assert_int_equal(o.share, 250000);
	assert_int_equal(o.window_ns, 600 * NSEC_PER_SEC);
	assert_int_equal(o.duration_ns, 1500 * NSEC_PER_MSEC);
	assert_int_equal(o.events.count, 2);
	assert_int_equal(o.reports.count, 2);
	assert_true(o.capture);
}

static void takes_sql_and_a_histogram(void **state _unused_)
{
	_cleanup_order_ struct order o = { 0 }, other = { 0 };

	assert_int_equal(parse(&o, HEAD
			       "duration = 1s\nas = wakeup\nreports = hist\n"
			       "sql = SELECT (end.TIMESTAMP_USECS - start.TIMESTAMP_USECS) AS lat\n"
			       "  FROM sched_waking AS start JOIN sched_switch AS end\n"
			       "  ON start.pid = end.next_pid\n"
			       "hist = wakeup:keys=lat.log2\n  if lat > 5\n"),
			 0);
	assert_string_equal(o.sql, "SELECT (end.TIMESTAMP_USECS - start.TIMESTAMP_USECS) AS lat "
				   "FROM sched_waking AS start JOIN sched_switch AS end "
				   "ON start.pid = end.next_pid");
	assert_string_equal(o.as, "wakeup");
	assert_string_equal(o.hist, "wakeup:keys=lat.log2 if lat > 5");
	assert_string_equal(o.hist_event, "wakeup");
	assert_int_equal(parse(&other, HEAD "duration = 1s\ncapture = yes\n"
					    "hist = sched:sched_switch:keys=next_comm\n"),
			 0);
	assert_string_equal(other.hist_event, "sched:sched_switch");
}

static void takes_segments(void **state _unused_)
{
#define CUT HEAD "duration = 1s\nevents = sched:*\ncapture = yes\n"
	_cleanup_order_ struct order o = { 0 }, other = { 0 };

	assert_int_equal(parse(&o, CUT "segments = 1m 16M\nformat = json.gz\n"), 0);
	assert_true(o.segments.ns == 60 * NSEC_PER_SEC && o.segments.bytes == 16 << 20);
	assert_string_equal(o.format, "json.gz");
	assert_int_equal(parse(&other, CUT "segments = 64K\n"), 0);
	assert_true(!other.segments.ns && other.segments.bytes == 64 << 10 && !other.format);
	refuses(CUT "segments = 999ms\n");
	refuses(CUT "segments = 63K\n");
	refuses(CUT "segments = 1m 2m\n");
	refuses(CUT "segments = 1M 2M\n");
	refuses(CUT "segments = 10\n");
	refuses(CUT "segments = 1s 1M 1s\n");
	refuses(CUT "segments = --keep\n");
	refuses(CUT "segments =\n");
	refuses(CUT "format = json\n");
	refuses(CUT "segments = 1m\nformat = traced\n");
	refuses(CUT "segments = 1m\nformat = ../x\n");
	refuses(CUT "segments = 1m\nreports = sched\n");
	refuses(CUT "segments = 1m\nuntil = irq.max > 1s\n");
	refuses(HEAD "duration = 1s\nevents = sched:*\nreports = sched\nsegments = 1m\n");
}

static void takes_a_budget(void **state _unused_)
{
	_cleanup_order_ struct order o = { 0 }, other = { 0 };

	assert_int_equal(parse(&o, USUAL "cpu_max = 0.5%\nbytes_max = 1M\n"), 0);
	assert_true(o.cpu_permille == 5 && o.bytes_max == 1 << 20);
	assert_int_equal(parse(&other, USUAL), 0);
	assert_true(!other.cpu_permille && !other.bytes_max);
	refuses(USUAL "cpu_max = 0%\n");
	refuses(USUAL "cpu_max = 100.1%\n");
	refuses(USUAL "cpu_max = 2% --shed\n");
	refuses(USUAL "cpu_max = 18446744073709551617%\n");
	refuses(USUAL "cpu_max =\n");
	refuses(USUAL "bytes_max = -1\n");
	refuses(USUAL "cpu_max = 2%\nuntil = irq.max > 1s\n");
	refuses(CUT "segments = 1m\nbytes_max = 1M\n");
}

static void takes_a_query(void **state _unused_)
{
	_cleanup_order_ struct order o = { 0 };

	assert_int_equal(parse(&o, USUAL "presigned = temp_url_sig=0af\n  temp_url_expires=9\n"
					 "  temp_url_prefix=a/b%3D7/\n"),
			 0);
	assert_int_equal(o.presigned.count, 3);
	assert_string_equal(o.presigned.items[2], "temp_url_prefix=a/b%3D7/");
	refuses(USUAL "presigned = x\n");
	refuses(USUAL "presigned = =x\n");
	refuses(USUAL "presigned = a=b&c=d\n");
	refuses(USUAL "presigned = a=b#c\n");
	refuses(USUAL "presigned = a=b?c\n");
	refuses(USUAL "presigned = a=@host/\n");
	refuses(USUAL "presigned = /../=b\n");
}

static void refuses_what_it_does_not_know(void **state _unused_)
{
	refuses("");
	refuses("serial = 7\n");
	refuses(USUAL "command = reboot\n");
	refuses(USUAL "[more]\nserial = 8\n");
	refuses(USUAL "serial = 8\n");
	refuses(USUAL "serial\n");
	refuses(USUAL " serial = 8\n");
	refuses(USUAL "  second line of reports; a shell\n\x01");
	refuses(USUAL "# \xc3\xa9\n");
}

static void refuses_what_is_missing(void **state _unused_)
{
	refuses("[order]\nfleet = doors\n" EXPIRES "duration = 1s\nreports = sched\n");
	refuses("[order]\nserial = 7\n" EXPIRES "duration = 1s\nreports = sched\n");
	refuses("[order]\nserial = 7\nfleet = doors\nduration = 1s\nreports = sched\n");
	refuses(HEAD "reports = sched\n");
	refuses(HEAD "duration = 1s\nevents = sched:*\n");
	refuses(HEAD "duration = 1s\ncapture = yes\n");
	refuses(HEAD "duration = 1s\nreports = sched\nprofile = io\nevents = irq:*\n");
	refuses(HEAD "duration = 1s\nreports = sched\nfilter = prev_prio < 5\n");
	refuses(USUAL "sql = SELECT 1\n");
	refuses(USUAL "as = wakeup\n");
	refuses(USUAL "hist = sched:sched_switch:keys=next_comm\n");
	refuses(HEAD "duration = 1s\nsql = SELECT 1\nas = wakeup\n");
}

static void refuses_hostile_values(void **state _unused_)
{
	static const char *const lines[] = {
		"serial = 0",
		"serial = -1",
		"serial = 18446744073709551616",
		"serial = 1 2",
		"fleet = ../x",
		"fleet = -e",
		"fleet = a/b",
		"fleet =",
		"group = a b",
		/* Nobody can pass an order for a group off as one for all. */
		"group = all",
		"salt = a%b",
		"share = 0",
		"share = 100.000001",
		"share = 1e2",
		"share = 0.0000001",
		"share = 1.",
		"share = .5",
		"share = nan",
		"expires = 2026-11-28",
		"expires = 2026-02-30T00:00:00Z",
		"expires = 2026-11-28T13:00:00+01:00",
		"expires = 1970-01-01T00:00:00Z",
		"expires = 0000-00-00T00:00:00Z",
		"duration = 0",
		"duration = -1s",
		"duration = 999999999999h",
		"events = sched",
		"events = -o:x",
		"events = --help",
		"events = sched:",
		"events = :sched_switch",
		"events = sched:sched_switc?",
		"events = sched:[a-z]",
		"events = sched:a,b/../c:d",
		"reports = --output=/etc/passwd",
		"reports = /etc/passwd",
		"profile = ../../etc/passwd",
		"profile = -o",
		"labels = type",
		"labels = =x",
		"labels = type=",
		"capture = maybe",
		"filter =",
		"sql =",
		"hist =",
		"hist = keys=next_comm",
		"hist = sched_switch:keys=next_comm",
		"hist = :keys=next_comm",
		"hist = sched:*:keys=next_comm",
		"hist = kmem:kmalloc:sched:sched_switch:keys=next_comm",
		"hist = sched:sched_switch if 1:keys=next_comm",
		"hist = -o:x",
		"until =",
		"until = event",
		"until = event sched",
		"until = event sched:*",
		"until = event sched : sched_switch",
		"until = eventsched:sched_switch",
		"until = event sched:sched_sw?",
		"until = lost > 0",
	};

	struct order o = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		/* The key's own line of ALL goes, as a second one would be refused anyway. */
		size_t key = strcspn(lines[i], "=") + 1;
		_cleanup_buf_ struct buf text = BUF_INIT;

		for (const char *line = ALL; *line; line += strcspn(line, "\n") + 1)
			if (strncmp(line, lines[i], key) != 0)
				buf_printf(&text, "%.*s\n", (int)strcspn(line, "\n"), line);
		buf_printf(&text, "%s\n", lines[i]);
		refuses(buf_string(&text));
	}
	assert_int_equal(parse(&o, ALL), 0);
	order_deinit(&o);
	refuses(USUAL "sql = SELECT 1\nas = a:b\n");
	refuses(USUAL "sql = SELECT 1\nas = -o\n");
	assert_int_equal(parse(&o, USUAL "sql = SELECT 1\nas = a\n"), 0);
	order_deinit(&o);
	/* It would record the daemon's default events. */
	refuses(HEAD "duration = 1s\nreports = hist\ncapture = yes\n");
}

static void refuses_long_values(void **state _unused_)
{
	char text[ORDER_MAX + 1024] = USUAL "group = ";
	struct order o = { 0 };
	size_t at = strlen(text);

	memset(text + at, 'g', 65);
	refuses(text);
	memset(text + at, 'g', 1000);
	refuses(text);
	memset(text + at, '\n', sizeof(text) - 1 - at);
	refuses(text);
	strcpy(text, HEAD "duration = 1s\nreports = sched\nas = x\nsql = SELECT\n");
	at = strlen(text) + 2 * KEYS_TEXT_MAX;
	while (strlen(text) < at)
		strcat(text, " 1234567890\n");
	refuses(text);
	/* 33 words. */
	strcpy(text, HEAD "duration = 1s\nreports =\n");
	for (int i = 0; i < 33; i++)
		strcat(text, " r\n");
	refuses(text);
	assert_null(o.fleet);
}

/* A board of the fleet doors, with usual limits. */
struct board {
	struct policy policy;
	struct state state;
	unsigned char digest[DIGEST_SIZE];
};

static void words(struct string_list *list, const char *text)
{
	assert_int_equal(string_list_add_words(list, text), 0);
}

static void last(struct board *b, const char *group, uint64_t serial)
{
	struct state_taken *taken = b->state.taken;

	while (taken->group[0] && strcmp(taken->group, group) != 0)
		taken++;
	strcpy(taken->group, group);
	taken->serial = serial;
	b->state.taken_count = MAX(b->state.taken_count, (size_t)(taken - b->state.taken + 1));
}

static int board_setup(void **state)
{
	struct board *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->policy = (struct policy){
		.id = strdup("door-17"),
		.fleet = strdup("doors"),
		.tracectl = strdup("/usr/bin/tracectl"),
		.validity_ns = 86400 * NSEC_PER_SEC,
		.duration_ns = 10 * NSEC_PER_SEC,
		.window_ns = 60 * NSEC_PER_SEC,
		.orders_a_day = 2,
	};
	words(&b->policy.groups, "canary eu");
	words(&b->policy.labels, "type=door-3 arch=arm64");
	words(&b->policy.events, "sched:* irq:irq_handler_*");
	words(&b->policy.profiles, "io");
	words(&b->policy.reports, "sched irq");
	b->state = STATE_INIT;
	last(b, STATE_ALL, 6);
	b->state.day = NOW / 86400;
	*state = b;
	return 0;
}

static int board_teardown(void **state)
{
	struct board *b = *state;

	policy_deinit(&b->policy);
	free(b);
	return 0;
}

static enum verdict judged(struct board *b, const char *text, uint64_t now)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_order_ struct order o = { 0 };
	enum verdict verdict;

	assert_int_equal(parse(&o, text), 0);
	verdict = judge_order(&o, &b->policy, &b->state, b->digest, now, &err);
	assert_true(verdict < VERDICT_FIRST_REFUSAL || err.message);
	return verdict;
}

static void a_board_follows_what_is_meant_for_it(void **state)
{
	struct board *b = *state;

	assert_int_equal(judged(b, USUAL, NOW), VERDICT_TAKE);
	assert_int_equal(judged(b, USUAL "group = eu\n", NOW), VERDICT_TAKE);
	assert_int_equal(judged(b, USUAL "group = us\n", NOW), VERDICT_OTHERS);
	assert_int_equal(judged(b, USUAL "labels = type=door*\n", NOW), VERDICT_TAKE);
	assert_int_equal(judged(b, USUAL "labels = type=door* arch=x86*\n", NOW), VERDICT_OTHERS);
	assert_int_equal(judged(b, USUAL "labels = region=*\n", NOW), VERDICT_OTHERS);
	assert_int_equal(judged(b, USUAL "not_before = 2026-11-28T12:00:01Z\n", NOW),
			 VERDICT_LATER);
	free(b->policy.fleet);
	b->policy.fleet = strdup("lifts");
	assert_int_equal(judged(b, USUAL, NOW), VERDICT_OTHERS);
}

static void old_orders_are_refused(void **state)
{
	struct board *b = *state;

	assert_int_equal(judged(b, USUAL, NOW + 3599), VERDICT_TAKE);
	assert_int_equal(judged(b, USUAL, NOW + 3600), VERDICT_EXPIRED);
	/* A clock without a battery. */
	assert_int_equal(judged(b, USUAL, 1000), VERDICT_VALIDITY);
	last(b, STATE_ALL, 7);
	b->digest[0] = 1;
	assert_int_equal(judged(b, USUAL, NOW), VERDICT_REPLAYED);
	memcpy(b->state.taken[0].digest, b->digest, DIGEST_SIZE);
	assert_int_equal(judged(b, USUAL, NOW), VERDICT_KNOWN);
	last(b, STATE_ALL, 8);
	assert_int_equal(judged(b, USUAL, NOW), VERDICT_REPLAYED);
	last(b, STATE_ALL, 6);
	b->state.orders = 2;
	assert_int_equal(judged(b, USUAL, NOW), VERDICT_TOO_MANY);
	b->state.day--;
	assert_int_equal(judged(b, USUAL, NOW), VERDICT_TAKE);
}

static void each_group_has_its_serials(void **state)
{
	struct board *b = *state;

	last(b, STATE_ALL, 8);
	assert_int_equal(judged(b, USUAL, NOW), VERDICT_REPLAYED);
	assert_int_equal(judged(b, USUAL "group = eu\n", NOW), VERDICT_TAKE);
	last(b, "eu", 8);
	assert_int_equal(judged(b, USUAL "group = eu\n", NOW), VERDICT_REPLAYED);
	assert_int_equal(judged(b, USUAL "group = canary\n", NOW), VERDICT_TAKE);
}

static void no_order_widens_the_policy(void **state)
{
#define SHORT HEAD "duration = 10s\nevents = sched:sched_switch\ncapture = yes\n"
	struct board *b = *state;

	assert_int_equal(judged(b, HEAD "duration = 11s\nreports = sched\n", NOW),
			 VERDICT_DURATION);
	assert_int_equal(judged(b, USUAL "window = 61s\n", NOW), VERDICT_WINDOW);
	assert_int_equal(judged(b, USUAL "capture = yes\n", NOW), VERDICT_CAPTURE);
	assert_int_equal(judged(b, HEAD "duration = 1s\nreports = sched syscalls\n", NOW),
			 VERDICT_REPORTS);
	assert_int_equal(judged(b, HEAD "duration = 1s\nreports = sched\nprofile = power\n", NOW),
			 VERDICT_PROFILE);
	assert_int_equal(judged(b, HEAD "duration = 1s\nreports = sched\nprofile = io\n", NOW),
			 VERDICT_TAKE);
	b->policy.captures = true;
	assert_int_equal(judged(b, USUAL "capture = yes\n", NOW), VERDICT_TAKE);
	assert_int_equal(judged(b, USUAL "presigned = a=b\n", NOW), VERDICT_PRESIGNED);
	b->policy.presigned = true;
	assert_int_equal(judged(b, USUAL "presigned = a=b\n", NOW), VERDICT_TAKE);
	assert_int_equal(judged(b, USUAL "cpu_max = 100%\n", NOW), VERDICT_TAKE);
	b->policy.cpu_permille = 20;
	assert_int_equal(judged(b, USUAL "cpu_max = 2%\n", NOW), VERDICT_TAKE);
	assert_int_equal(judged(b, USUAL "cpu_max = 2.1%\n", NOW), VERDICT_CPU);
	assert_int_equal(judged(b, USUAL, NOW), VERDICT_TAKE);
	b->policy.segments_max = 5;
	assert_int_equal(judged(b, SHORT "segments = 2s\n", NOW), VERDICT_TAKE);
	assert_int_equal(judged(b, SHORT "segments = 1999ms\n", NOW), VERDICT_SEGMENTS);
	assert_int_equal(judged(b, SHORT "segments = 64K\n", NOW), VERDICT_TAKE);
}

static void a_condition_is_a_trigger(void **state)
{
	struct board *b = *state;

	assert_int_equal(judged(b, USUAL "until = sched.delay > 5ms\n", NOW), VERDICT_TRIGGERS);
	b->policy.triggers = true;
	assert_int_equal(judged(b, USUAL "until = sched.delay > 5ms\n", NOW), VERDICT_TAKE);
	assert_int_equal(judged(b, USUAL "until = event sched:sched_process_exit if x == 1\n", NOW),
			 VERDICT_TAKE);
	assert_int_equal(judged(b, USUAL "until = event   kmem:kmalloc\n", NOW), VERDICT_EVENTS);
	assert_int_equal(judged(b, USUAL "until = mark \"event kmem:kmalloc\" > 1s\n", NOW),
			 VERDICT_TAKE);
}

/* Neither by what the order may record, nor by each other. */
static void sql_and_histograms_are_allowed_apart(void **state)
{
	static const char sql[] = USUAL "sql = SELECT 1\nas = x\n",
			  of_sql[] =
				  USUAL "capture = yes\nsql = SELECT 1\nas = x\nhist = x:keys=y\n",
			  of_event[] =
				  USUAL "capture = yes\nhist = sched:sched_switch:keys=prev_pid\n",
			  of_both[] = USUAL "capture = yes\nsql = SELECT 1\nas = sched_switch\n"
					    "hist = sched:sched_switch:keys=prev_pid\n";
	struct board *b = *state;

	b->policy.captures = true;
	assert_int_equal(judged(b, sql, NOW), VERDICT_SQL);
	assert_int_equal(judged(b, of_sql, NOW), VERDICT_SQL);
	assert_int_equal(judged(b, of_event, NOW), VERDICT_HIST);
	b->policy.sql = true;
	assert_int_equal(judged(b, sql, NOW), VERDICT_TAKE);
	assert_int_equal(judged(b, of_sql, NOW), VERDICT_TAKE);
	assert_int_equal(judged(b, of_event, NOW), VERDICT_HIST);
	assert_int_equal(judged(b, of_both, NOW), VERDICT_HIST);
	words(&b->policy.hist, "kmem:* sched:sched_sw*");
	assert_int_equal(judged(b, of_both, NOW), VERDICT_TAKE);
	b->policy.sql = false;
	assert_int_equal(judged(b, of_event, NOW), VERDICT_TAKE);
	assert_int_equal(
		judged(b, USUAL "capture = yes\nhist = sched:sched_wakeup:keys=pid\n", NOW),
		VERDICT_HIST);
}

static void allowed_events_hold_all_of_the_orders(void **state)
{
	static const struct {
		const char *event;
		bool allowed;
	} cases[] = {
		{ "sched:sched_switch", true },
		{ "sched:*", true },
		{ "irq:irq_handler_entry", true },
		{ "irq:irq_handler_*", true },
		{ "irq:*", false },
		{ "irq:softirq_entry", false },
		{ "*:sched_switch", false },
		{ "*:*", false },
		{ "sche*:sched_switch", false },
		{ "irq:irq_handler*", false },
		{ "syscalls:sys_enter_open", false },
	};
	struct board *b = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct buf text = BUF_INIT;

		buf_printf(&text, HEAD "duration = 1s\nreports = sched\nevents = %s\n",
			   cases[i].event);
		assert_int_equal(judged(b, buf_string(&text), NOW),
				 cases[i].allowed ? VERDICT_TAKE : VERDICT_EVENTS);
	}
}

static unsigned boards_in(struct board *b, const char *lines)
{
	unsigned count = 0;

	for (int i = 0; i < 10000; i++) {
		_cleanup_buf_ struct buf text = BUF_INIT, id = BUF_INIT;

		buf_printf(&id, "door-%d", i);
		free(b->policy.id);
		b->policy.id = strdup(buf_string(&id));
		buf_printf(&text, USUAL "%s", lines);
		count += judged(b, buf_string(&text), NOW) == VERDICT_TAKE;
	}
	return count;
}

static void a_share_has_its_boards(void **state)
{
	struct board *b = *state;
	unsigned count = boards_in(b, "share = 1\nsalt = autumn\n");

	/* 100, and five standard deviations. */
	assert_in_range(count, 50, 150);
	assert_in_range(boards_in(b, "share = 50\nsalt = autumn\n"), 4750, 5250);
	assert_int_equal(boards_in(b, "share = 100\n"), 10000);
}

static bool is_in(struct board *b, const char *text)
{
	return judged(b, text, NOW) == VERDICT_TAKE;
}

static void a_salt_chooses_the_same_boards(void **state)
{
	unsigned smaller = 0, larger = 0, other = 0;
	struct board *b = *state;

	for (int i = 0; i < 64; i++) {
		bool is_in_larger;
		char id[16];

		snprintf(id, sizeof(id), "door-%d", i);
		free(b->policy.id);
		b->policy.id = strdup(id);
		is_in_larger = is_in(b, USUAL "share = 60\nsalt = a\n");
		larger += is_in_larger;
		other += is_in_larger != is_in(b, USUAL "share = 60\nsalt = b\n");
		if (!is_in(b, USUAL "share = 30\nsalt = a\n"))
			continue;
		smaller++;
		assert_true(is_in_larger);
	}
	assert_true(smaller && smaller < larger && larger < 64 && other);
}

static void arguments_are_words(void **state)
{
	static const char *const wanted[] = {
		"/usr/bin/tracectl",
		"record",
		"--quiet",
		"-t",
		"2000000000ns",
		"--max-cpu",
		"0.5%",
		"-e",
		"sched:sched_switch",
		"-f",
		"prev_comm == \"; reboot\"",
		"--sql",
		"SELECT -o FROM '; reboot'",
		"--as",
		"x",
		"--hist",
		"x:keys=y if z ~ \"*\"",
		"--report",
		"sched,irq",
		"--json",
		"-o",
		"capture.traced",
		NULL,
	};
	struct board *b = *state;
	_cleanup_(recorder_arguments_deinit) struct recorder_arguments a = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_order_ struct order o = { 0 };

	assert_int_equal(parse(&o, HEAD "duration = 2s\nevents = sched:sched_switch\n"
					"filter = prev_comm == \"; reboot\"\n"
					"sql = SELECT -o\n  FROM '; reboot'\nas = x\n"
					"hist = x:keys=y if z ~ \"*\"\n"
					"reports = sched irq\ncapture = yes\ncpu_max = 0.5%\n"),
			 0);
	assert_int_equal(recorder_arguments_init(&a, &o, &b->policy, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (wanted[i])
			assert_string_equal(a.argv[i], wanted[i]);
		else
			assert_null(a.argv[i]);
}

static void a_condition_is_awaited_by_a_command(void **state)
{
	static const char *const wanted[] = {
		"/usr/bin/tracectl",
		"--socket",
		"/run/x",
		"record",
		"--quiet",
		"--ring",
		"--report",
		"sched",
		"--json",
		"--",
		"/usr/bin/tracectl",
		"--socket",
		"/run/x",
		"wait",
		"--quiet",
		"--on",
		"sched.delay > 5ms for comm=\"-o reboot\"",
		"-t",
		"2000000000ns",
		NULL,
	};
	struct board *b = *state;
	_cleanup_(recorder_arguments_deinit) struct recorder_arguments a = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_order_ struct order o = { 0 };

	b->policy.socket = strdup("/run/x");
	/* Nothing reads a ring. */
	b->policy.cpu_permille = 10;
	assert_int_equal(parse(&o, HEAD "duration = 2s\nreports = sched\n"
					"until = sched.delay > 5ms for comm=\"-o\n  reboot\"\n"),
			 0);
	assert_int_equal(recorder_arguments_init(&a, &o, &b->policy, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (wanted[i])
			assert_string_equal(a.argv[i], wanted[i]);
		else
			assert_null(a.argv[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_all_keys),
		cmocka_unit_test(takes_sql_and_a_histogram),
		cmocka_unit_test(takes_segments),
		cmocka_unit_test(takes_a_budget),
		cmocka_unit_test(takes_a_query),
		cmocka_unit_test(refuses_what_it_does_not_know),
		cmocka_unit_test(refuses_what_is_missing),
		cmocka_unit_test(refuses_hostile_values),
		cmocka_unit_test(refuses_long_values),
#define BOARD_TEST(f) cmocka_unit_test_setup_teardown(f, board_setup, board_teardown)
		BOARD_TEST(a_board_follows_what_is_meant_for_it),
		BOARD_TEST(old_orders_are_refused),
		BOARD_TEST(each_group_has_its_serials),
		BOARD_TEST(no_order_widens_the_policy),
		BOARD_TEST(a_condition_is_a_trigger),
		BOARD_TEST(sql_and_histograms_are_allowed_apart),
		BOARD_TEST(allowed_events_hold_all_of_the_orders),
		BOARD_TEST(a_share_has_its_boards),
		BOARD_TEST(a_salt_chooses_the_same_boards),
		BOARD_TEST(arguments_are_words),
		BOARD_TEST(a_condition_is_awaited_by_a_command),
	};

	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
