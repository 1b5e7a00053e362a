/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A line on the terminal that is rewritten; nothing elsewhere. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/control.pb-c.h"

#define PROGRESS_MS 400

struct progress {
	bool on;
	bool shown;
};

/* wanted: not -q. out: the output, which may be the same terminal; negative: none. */
void progress_init(struct progress *p, bool wanted, int out);
/* While a recording runs: it says how long, once. */
void progress_record(struct progress *p, uint64_t duration_ns);
void progress_session(struct progress *p, const Traced__Control__Session *session);
void progress_text(struct progress *p, const char *text);
/* Clears the line, before other messages. */
void progress_clear(struct progress *p);
