/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "daemon/service/session.h"

#define STATES (SESSION_OVER + 1)
#define EVENTS (SESSION_CANCELLED + 1)

/* The next state, or -1: the event is refused. */
static int next(unsigned state, unsigned event)
{
	struct session s = { .name = (char *)"a", .state = state };

	return session_pass(&s, event) ? (int)s.state : -1;
}

static void nothing_follows_on_the_end(void **state _unused_)
{
	for (unsigned e = 0; e < EVENTS; e++)
		assert_int_equal(next(SESSION_OVER, e), -1);
}

static void every_state_can_be_cancelled(void **state _unused_)
{
	for (unsigned s = 0; s < STATES; s++)
		assert_int_equal(next(s, SESSION_CANCELLED),
				 s == SESSION_OVER ? -1 : (int)SESSION_OVER);
}

static void an_event_belongs_to_its_states(void **state _unused_)
{
	static const struct {
		enum session_event event;
		const char *from; /* digits of enum session_state */
	} table[] = {
		{ SESSION_ARMED, "0" },	       { SESSION_NOT_ARMED, "0" },
		{ SESSION_ENDED, "1" },	       { SESSION_DRAINED, "2" },
		{ SESSION_NOTHING_KEPT, "2" }, { SESSION_EXPORTED, "345" },
		{ SESSION_CONCLUDED, "345" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		for (unsigned s = 0; s < STATES; s++)
			assert_int_equal(next(s, table[i].event) >= 0,
					 strchr(table[i].from, '0' + (int)s) != NULL);
}

static void a_recording_begins_once(void **state _unused_)
{
	for (unsigned s = 0; s < STATES; s++)
		for (unsigned e = 0; e < EVENTS; e++) {
			assert_int_not_equal(next(s, e), SESSION_ARMING);
			assert_int_equal(next(s, e) == SESSION_RECORDING,
					 s == SESSION_ARMING && e == SESSION_ARMED);
		}
}

static void each_state_is_reached(void **state _unused_)
{
	bool reached[STATES] = { [SESSION_ARMING] = true };

	for (unsigned round = 0; round < STATES; round++)
		for (unsigned s = 0; s < STATES; s++)
			for (unsigned e = 0; reached[s] && e < EVENTS; e++)
				if (next(s, e) >= 0)
					reached[next(s, e)] = true;
	for (unsigned s = 0; s < STATES; s++)
		assert_true(reached[s]);
}

static void a_refused_event_changes_nothing(void **state _unused_)
{
	struct session s = { .name = (char *)"a", .state = SESSION_RECORDING };

	assert_false(session_pass(&s, SESSION_EXPORTED));
	assert_int_equal(s.state, SESSION_RECORDING);
	assert_true(session_pass(&s, SESSION_ENDED));
	assert_int_equal(s.state, SESSION_DRAINING);
	assert_false(session_pass(&s, SESSION_ENDED));
	assert_int_equal(s.state, SESSION_DRAINING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_follows_on_the_end),
		cmocka_unit_test(every_state_can_be_cancelled),
		cmocka_unit_test(an_event_belongs_to_its_states),
		cmocka_unit_test(a_recording_begins_once),
		cmocka_unit_test(each_state_is_reached),
		cmocka_unit_test(a_refused_event_changes_nothing),
	};

	log_set_level(LOG_EMERG);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
