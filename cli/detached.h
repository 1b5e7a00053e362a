/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the commands for detached sessions. */
#pragma once

#include "cli.h"

/* Opens the output, sends a Stop, Snapshot or Extract, and reports the result. */
enum fetch_verb { FETCH_STOP, FETCH_SNAPSHOT, FETCH_EXTRACT };
int fetch_run(const struct options *o, enum fetch_verb verb);

#define OPTIONS_RESULT                                                                             \
	OPTION(OUTPUT), OPTION(FORMAT), OPTION(TGID), OPTION(RAW_ADDRESSES), OPTIONS_FORMATS,      \
		OPTIONS_MERGE, OPTION(FAIL_ON_LOSS), OPTION(JSON), OPTION(QUIET), OPTION(VERBOSE)
