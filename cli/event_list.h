/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events of this kernel: from the daemon, else directly from tracefs. */
#pragma once

#include "cli.h"
#include "daemon/capture/tracefs/tracefs.h"
#include "link.h"

struct event_list {
	const char *const *names; /* "system:event", sorted; borrowed from the members below */
	size_t count;
	Traced__Control__Reply *reply; /* owned, or NULL */
	struct tracefs *tracefs;       /* owned, or NULL */
};
int event_list_init(struct event_list *ret, const struct options *o, struct error *err);
void event_list_deinit(struct event_list *list);
#define _cleanup_event_list_ _cleanup_(event_list_deinit)
