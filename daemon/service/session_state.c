/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The states of a session. session_pass() is the only function that changes one. */
#include "base/log.h"
#include "daemon/service/session.h"

static const struct {
	enum session_state state;
	enum session_event event;
	enum session_state next;
} transitions[] = {
	{ SESSION_ARMING, SESSION_ARMED, SESSION_RECORDING },
	{ SESSION_ARMING, SESSION_NOT_ARMED, SESSION_OVER },
	{ SESSION_ARMING, SESSION_CANCELLED, SESSION_OVER },
	{ SESSION_RECORDING, SESSION_ENDED, SESSION_DRAINING },
	{ SESSION_RECORDING, SESSION_CANCELLED, SESSION_OVER },
	{ SESSION_DRAINING, SESSION_DRAINED, SESSION_STOPPED },
	{ SESSION_DRAINING, SESSION_NOTHING_KEPT, SESSION_FAILED },
	{ SESSION_DRAINING, SESSION_CANCELLED, SESSION_OVER },
	{ SESSION_STOPPED, SESSION_EXPORTED, SESSION_EXPORTING },
	{ SESSION_STOPPED, SESSION_CONCLUDED, SESSION_OVER },
	{ SESSION_STOPPED, SESSION_CANCELLED, SESSION_OVER },
	/* An export that follows the recording still writes what it has read. */
	{ SESSION_FAILED, SESSION_EXPORTED, SESSION_EXPORTING },
	{ SESSION_FAILED, SESSION_CONCLUDED, SESSION_OVER },
	{ SESSION_FAILED, SESSION_CANCELLED, SESSION_OVER },
	{ SESSION_EXPORTING, SESSION_EXPORTED, SESSION_EXPORTING },
	{ SESSION_EXPORTING, SESSION_CONCLUDED, SESSION_OVER },
	{ SESSION_EXPORTING, SESSION_CANCELLED, SESSION_OVER },
};

bool session_pass(struct session *s, enum session_event event)
{
	for (size_t i = 0; i < ARRAY_SIZE(transitions); i++) {
		if (transitions[i].state != s->state || transitions[i].event != event)
			continue;
		s->state = transitions[i].next;
		return true;
	}
	log_error("%s: event %d is refused in state %d: this is a bug", s->name, event, s->state);
	return false;
}
