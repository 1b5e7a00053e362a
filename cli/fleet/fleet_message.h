/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A board's message of its status, as agent/status.c writes it. The broker's clients wrote it. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Bytes of a message: docs/fleet.md. */
#define MESSAGE_MAX 2048
/* Longer ones are cut. */
#define STATUS_WORD_MAX 31
#define STATUS_REASON_MAX 199

/* One board says this of one order. Only board is checked for its characters. */
struct board_status {
	char board[65], state[STATUS_WORD_MAX + 1], outcome[STATUS_WORD_MAX + 1];
	char reason[STATUS_REASON_MAX + 1];
	size_t number; /* of the message */
};

/* Sets state, and of that order outcome and reason. -EBADMSG and others: it is no message. */
int board_status_read(struct board_status *ret, uint64_t order, const char *data, size_t len,
		      struct error *err);
