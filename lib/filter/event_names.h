/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The events that a filter names: "sched/sched_switch, irq, sys_enter_.*". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "print/event_table.h"

/*
 * Sets chosen[i] for each of the events that a word of the list names: as a glob of a system or an
 * event, SYSTEM:EVENT or SYSTEM/EVENT. A word that matches nothing as a glob is tried as regular
 * expressions, which match whole names and ignore case. whole: the filter; its first len bytes are
 * the list. -EINVAL: a word matches nothing. Returns 0 or -errno.
 */
int event_names_choose(const char *whole, size_t len, const struct event *const *events,
		       size_t count, bool *chosen, struct error *err);
