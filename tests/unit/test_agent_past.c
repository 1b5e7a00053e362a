/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Orders, outcomes and segments that one life of the agent leaves to the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/kept.h"
#include "agent/past.h"
#include "base/io.h"
#include "own_folder.h"
#include "signify.h"

#define HOUR_S 3600

/* All orders of a test expire then: one that comes twice is the same. */
static time_t expires;

static void put_text(const char *path, const char *text)
{
	assert_int_equal(replace_file(path, text, strlen(text), 0644, false), 0);
}

/* A board with that in [limits] and [board]. */
static void put_board(const char *limits, const char *board)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char folder[PATH_MAX];

	assert_non_null(getcwd(folder, sizeof(folder)));
	buf_printf(&text,
		   "[board]\nid = door-17\nfleet = doors\ngroups = eu us\n%s"
		   "[orders]\nurl = https://127.0.0.1:9/orders\nkeys = %s/keys\n"
		   "[results]\nurl = https://127.0.0.1:9/results\n"
		   "[limits]\nevents = sched:*\nreports = sched\nwindow_max = 1h\n%s"
		   "[agent]\nstate_dir = %s/state\n",
		   board, folder, limits, folder);
	put_text("agent.conf", buf_string(&text));
}

static int setup(void **state)
{
	_cleanup_buf_ struct buf key = BUF_INIT;
	struct signer signer;
	int r = own_folder_setup(state);

	expires = time(NULL) + HOUR_S;
	signer_init(&signer, 1);
	signer_put_key(&signer, &key);
	if (r || mkdir("keys", 0755) < 0 || mkdir("state", 0700) < 0 || !buf_string(&key))
		return -1;
	put_text("keys/order.pub", key.data);
	put_board("captures = yes\n", "labels = type=door\n");
	return 0;
}

static void begin(struct agent *a)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	if (agent_init(a, "agent.conf", geteuid(), &err) < 0)
		fail_msg("%s", err.message);
}

/* The agent is killed, and starts again. */
static void begin_again(struct agent *a)
{
	agent_deinit(a);
	begin(a);
	agent_take_up(a);
}

/* keys: further lines. */
static void put_order(struct buf *signed_, uint64_t serial, const char *keys)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct signer signer;
	char until[32];

	strftime(until, sizeof(until), "%Y-%m-%dT%H:%M:%SZ", gmtime(&expires));
	buf_printf(&text,
		   "[order]\nserial = %" PRIu64 "\nfleet = doors\nexpires = %s\nduration = 1s\n"
		   "events = sched:sched_switch\n%s",
		   serial, until, keys);
	signer_init(&signer, 1);
	signer_put_signed(&signer, buf_string(&text), signed_);
	assert_non_null(buf_string(signed_));
}

static enum verdict take(struct agent *a, uint64_t serial, const char *keys, struct place *place)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	put_order(&text, serial, keys);
	return agent_take(a, text.data, text.len, place);
}

static void outcome_is(const struct agent *a, uint64_t serial, enum outcome wanted,
		       const char *reason)
{
	const struct status_order *order = status_find(&a->status, serial);

	assert_non_null(order);
	assert_string_equal(outcome_name(order->outcome), outcome_name(wanted));
	assert_string_equal(order->reason, reason);
}

static void put_segment(unsigned number)
{
	char path[64];

	snprintf(path, sizeof(path), "state/recording/7.%04u.pftrace", number);
	put_text(path, path);
}

#define REPORTS "reports = sched\n"
#define CUT "capture = yes\nsegments = 1s\n"

/* Without a battery, the clock begins in 1970: the kept start is decades ahead. */
static void a_wrong_clock_delays_by_the_window_at_most(void **state _unused_)
{
	_cleanup_(agent_deinit) struct agent a;
	_cleanup_buf_ struct buf text = BUF_INIT;
	uint64_t now = (uint64_t)time(NULL);

	begin(&a);
	put_order(&text, 7, REPORTS "window = 1m\n");
	assert_int_equal(agent_take(&a, text.data, text.len, NULL), VERDICT_TAKE);
	assert_int_equal(
		kept_put(a.state.dirfd, 7, now + HOUR_S / 2, NULL, text.data, text.len, NULL), 0);
	begin_again(&a);
	assert_int_equal(a.jobs.count, 1);
	assert_true(a.jobs.items[0].start_ns <= now_ns(CLOCK_BOOTTIME) + 60 * NSEC_PER_SEC);
}

/* It came by a URL, then by a topic, which has it still while it is recorded. */
static void one_that_records_can_be_withdrawn(void **state _unused_)
{
	struct place place = { .name = (char *)"topic" };
	_cleanup_(agent_deinit) struct agent a;

	begin(&a);
	assert_int_equal(take(&a, 7, CUT, NULL), VERDICT_TAKE);
	assert_int_equal(state_begin(&a.state, 7, NULL), 0);
	a.jobs.is_recording = true;
	assert_int_equal(take(&a, 7, CUT, &place), VERDICT_KNOWN);
	a.recorder.look_ns = a.recorder.deadline_ns = now_ns(CLOCK_BOOTTIME);
	agent_withdraw(&a, &place);
	assert_true(a.jobs.is_withdrawn);
	assert_int_equal(a.withdrawn, 1);
	/* Nothing is looked for while it ends. */
	assert_true(a.recorder.look_ns == UINT64_MAX);
	/* The agent is killed before the recording has ended. */
	put_segment(1);
	begin_again(&a);
	outcome_is(&a, 7, OUTCOME_WITHDRAWN, "");
	assert_int_equal(a.interrupted, 0);
	assert_false(spool_has(&a.spool, 7));
	assert_int_equal(access("state/recording/7.0001.pftrace", F_OK), -1);
}

static void segments_outlive_the_agent(void **state _unused_)
{
	_cleanup_(agent_deinit) struct agent a;

	begin(&a);
	assert_int_equal(take(&a, 7, CUT, NULL), VERDICT_TAKE);
	assert_int_equal(state_begin(&a.state, 7, NULL), 0);
	put_segment(1);
	agent_deinit(&a);
	/* `--check` does no more. */
	begin(&a);
	assert_int_equal(access("state/recording/7.0001.pftrace", F_OK), 0);
	assert_false(spool_has(&a.spool, 7));
	agent_take_up(&a);
	outcome_is(&a, 7, OUTCOME_INTERRUPTED, "");
	assert_true(spool_has(&a.spool, 7));
	assert_int_equal(access("state/recording/7.0001.pftrace", F_OK), -1);
}

static void segments_need_the_policy_still(void **state _unused_)
{
	_cleanup_(agent_deinit) struct agent a;

	begin(&a);
	assert_int_equal(take(&a, 7, CUT, NULL), VERDICT_TAKE);
	assert_int_equal(state_begin(&a.state, 7, NULL), 0);
	put_segment(1);
	put_board("", "");
	begin_again(&a);
	assert_false(spool_has(&a.spool, 7));
	assert_int_equal(access("state/recording/7.0001.pftrace", F_OK), -1);
}

/* Results that wait do not change it. */
static void a_saved_outcome_stays(void **state _unused_)
{
	static const struct {
		const char *line;
		enum outcome outcome;
		const char *reason;
	} cases[] = {
		{ "7 withdrawn \n", OUTCOME_WITHDRAWN, "" },
		{ "7 failed no tracectl\n", OUTCOME_FAILED, "no tracectl" },
		{ "7 interrupted \n", OUTCOME_INTERRUPTED, "" },
		{ "7 uploading segments_max is reached\n", OUTCOME_UPLOADING,
		  "segments_max is reached" },
		/* Nothing was known of it, and now its results wait. */
		{ "7 ended \n", OUTCOME_UPLOADING, "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(agent_deinit) struct agent a;

		begin(&a);
		if (i == 0) {
			assert_int_equal(take(&a, 7, CUT, NULL), VERDICT_TAKE);
			assert_int_equal(state_close(&a.state, 7, NULL), 0);
			put_text("result", "x");
			assert_int_equal(spool_add(&a.spool, AT_FDCWD, "result", 7, "0001.pftrace",
						   1000, NULL),
					 0);
		}
		put_text("state/outcomes", cases[i].line);
		begin_again(&a);
		outcome_is(&a, 7, cases[i].outcome, cases[i].reason);
	}
}

/* Its recording had not begun. */
static void one_that_waited_was_not_interrupted(void **state _unused_)
{
	_cleanup_(agent_deinit) struct agent a;

	begin(&a);
	assert_int_equal(take(&a, 7, REPORTS "window = 1h\nlabels = type=door\n", NULL),
			 VERDICT_TAKE);
	put_board("", "labels = type=window\n");
	begin_again(&a);
	outcome_is(&a, 7, OUTCOME_REFUSED, "others");
	assert_int_equal(take(&a, 8, REPORTS "window = 1h\n", NULL), VERDICT_TAKE);
	put_text("state/orders/8", "damaged");
	begin_again(&a);
	outcome_is(&a, 8, OUTCOME_REFUSED, "state");
	assert_int_equal(a.interrupted + a.state.open_count, 0);
}

/* The agent was killed before it saved that the order waits. */
static void one_that_was_refused_before_is_taken_up(void **state _unused_)
{
	_cleanup_(agent_deinit) struct agent a;

	begin(&a);
	assert_int_equal(take(&a, 7, REPORTS "window = 1h\n", NULL), VERDICT_TAKE);
	put_text("state/outcomes", "7 refused full\n");
	begin_again(&a);
	assert_int_equal(a.jobs.count, 1);
	outcome_is(&a, 7, OUTCOME_WAITING, "");
	/* Now it may not: that is its end. */
	put_text("state/outcomes", "7 refused full\n");
	put_board("orders_a_day = 5\n", "labels = x=y\n");
	put_text("state/orders/7", "damaged");
	begin_again(&a);
	outcome_is(&a, 7, OUTCOME_REFUSED, "state");
	assert_int_equal(a.jobs.count + a.state.open_count, 0);
}

/* The kept text, the results and the outcome go by the serial. */
static void two_groups_share_no_serial(void **state _unused_)
{
	_cleanup_kept_ struct kept kept = { .order = BUF_INIT };
	_cleanup_(agent_deinit) struct agent a;

	begin(&a);
	assert_int_equal(take(&a, 7, REPORTS "window = 1h\ngroup = eu\n", NULL), VERDICT_TAKE);
	assert_int_equal(take(&a, 7, REPORTS "window = 1h\ngroup = us\n", NULL), VERDICT_REPLAYED);
	outcome_is(&a, 7, OUTCOME_WAITING, "");
	assert_int_equal(kept_get(a.state.dirfd, 7, &kept, NULL), 0);
	assert_non_null(strstr(buf_string(&kept.order), "group = eu"));
	assert_int_equal(a.jobs.count, 1);
}

/* The recording ended by itself before the agent looked. */
static void segments_beyond_the_last_are_known(void **state _unused_)
{
	_cleanup_(agent_deinit) struct agent a;

	begin(&a);
	a.policy.segments_max = 2;
	put_segment(1);
	put_segment(2);
	assert_int_equal(recorder_take_segments(&a.recorder, &a.policy, &a.spool, 0), 2);
	assert_false(a.recorder.is_full);
	put_segment(3);
	assert_int_equal(recorder_take_segments(&a.recorder, &a.policy, &a.spool, 0), 0);
	assert_true(a.recorder.is_full);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, own_folder_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wrong_clock_delays_by_the_window_at_most),
		TEST(one_that_records_can_be_withdrawn),
		TEST(segments_outlive_the_agent),
		TEST(segments_need_the_policy_still),
		TEST(a_saved_outcome_stays),
		TEST(one_that_waited_was_not_interrupted),
		TEST(one_that_was_refused_before_is_taken_up),
		TEST(two_groups_share_no_serial),
		TEST(segments_beyond_the_last_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
