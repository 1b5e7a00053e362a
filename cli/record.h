/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A recording that tracectl attends from its begin to its file. */
#pragma once

#include "cli.h"
#include "control/client.h"

/* How a recording without a terminal differs. */
struct record_mode {
	/* Called once it records; a failure ends it. */
	int (*started)(void *userdata, const Traced__Control__Session *session, struct error *err);
	void *userdata;
};
/* mode NULL: in the foreground, where root needs no daemon. Returns the exit status. */
int record_with(const struct options *o, const struct record_mode *mode);
