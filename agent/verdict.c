/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/verdict.h"

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[VERDICT_COUNT] = {
		[VERDICT_TAKE] = "take",
		[VERDICT_LATER] = "later",
		[VERDICT_OTHERS] = "others",
		[VERDICT_KNOWN] = "known",
		[VERDICT_SIZE] = "size",
		[VERDICT_FULL] = "full",
		[VERDICT_SIGNATURE] = "signature",
		[VERDICT_SYNTAX] = "syntax",
		[VERDICT_REPLAYED] = "replayed",
		[VERDICT_EXPIRED] = "expired",
		[VERDICT_VALIDITY] = "validity",
		[VERDICT_DURATION] = "duration",
		[VERDICT_WINDOW] = "window",
		[VERDICT_EVENTS] = "events",
		[VERDICT_PROFILE] = "profile",
		[VERDICT_REPORTS] = "reports",
		[VERDICT_SQL] = "sql",
		[VERDICT_HIST] = "hist",
		[VERDICT_TRIGGERS] = "triggers",
		[VERDICT_CAPTURE] = "capture",
		[VERDICT_SEGMENTS] = "segments",
		[VERDICT_CPU] = "cpu",
		[VERDICT_PRESIGNED] = "presigned",
		[VERDICT_TOO_MANY] = "too_many",
		[VERDICT_STATE] = "state",
	};

	return names[verdict];
}
