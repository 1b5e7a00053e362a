/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Asks the daemon, else tracefs itself, what this kernel offers. */
#pragma once

#include "cli.h"
#include "daemon/capture/tracefs/tracefs.h"
#include "link.h"

struct kernel_source {
	struct link link;
	struct tracefs *tracefs; /* owned; NULL: the daemon is asked */
};
/* Root needs no daemon. */
int kernel_source_open(struct kernel_source *ret, const struct options *o, struct error *err);
void kernel_source_deinit(struct kernel_source *s);
#define _cleanup_kernel_source_ _cleanup_(kernel_source_deinit)
/* The daemon's reply to a request for names: a list of events, or another one. */
int kernel_source_ask(struct kernel_source *s, Traced__Control__Request *request,
		      Traced__Control__Reply **ret, struct error *err);
