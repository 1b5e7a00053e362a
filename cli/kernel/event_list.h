/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events of this kernel: from the daemon, else directly from tracefs. */
#pragma once

#include "kernel_source.h"

struct event_list {
	const char *const *names; /* "system:event", sorted; borrowed from the members below */
	size_t count;
	Traced__Control__Reply *reply; /* owned, or NULL */
	struct kernel_source source;
};
int event_list_init(struct event_list *ret, const struct options *o, struct error *err);
void event_list_deinit(struct event_list *list);
#define _cleanup_event_list_ _cleanup_(event_list_deinit)
/* Appends the text of an event's format file. */
int event_list_format(struct event_list *list, const char *event, struct buf *out,
		      struct error *err);
