/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Replies with what the kernel offers to recordings: events, clocks, tracers, options. */
#pragma once

#include "daemon/service/connection.h"

/* The most events whose formats one reply has. */
#define KERNEL_FORMATS_MAX 64

int kernel_reply_events(struct connection *c, const Traced__Control__Request *request,
			struct error *err);
int kernel_reply_list(struct connection *c, const Traced__Control__Request *request,
		      struct error *err);
