/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The outcomes of an order. */
#pragma once

enum verdict {
	VERDICT_TAKE,
	VERDICT_LATER,	/* not_before lies ahead: ask again */
	VERDICT_OTHERS, /* the order is meant for other boards */
	VERDICT_KNOWN,	/* this board has taken this very order */
	/* Refusals, counted by reason. */
	VERDICT_SIZE,
	VERDICT_SIGNATURE,
	VERDICT_SYNTAX,
	VERDICT_REPLAYED,
	VERDICT_EXPIRED,
	VERDICT_VALIDITY,
	VERDICT_DURATION,
	VERDICT_WINDOW,
	VERDICT_EVENTS,
	VERDICT_PROFILE,
	VERDICT_REPORTS,
	VERDICT_SQL,
	VERDICT_HIST,
	VERDICT_TRIGGERS,
	VERDICT_CAPTURE,
	VERDICT_SEGMENTS,
	VERDICT_CPU,
	VERDICT_PRESIGNED,
	VERDICT_TOO_MANY,
	VERDICT_FULL, /* as many orders wait as may */
	VERDICT_STATE,
	VERDICT_COUNT,
};
#define VERDICT_FIRST_REFUSAL VERDICT_SIZE

/* One word, for messages and metrics. */
const char *verdict_name(enum verdict verdict);
