/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What libtraceevent does not check in a filter: it crashes at an expression that ends early, and
 * takes a comparison of a field that no event has as false, and reads -1 wrongly.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "print/event_table.h"

struct tep_event_filter;

#define FILTER_HINT                                                                                \
	"'tracectl events -v NAME' shows an event's fields; texts are in quotes: comm == \"x\""

/*
 * Appends the text with the kernel's `~ "glob"` as libtraceevent's `=~ "regex"`. Both ignore the
 * case of letters, as libtraceevent does. 0 or -ENOMEM.
 */
int filter_syntax_translate(const char *text, struct buf *out);
/* Whether operands and operators alternate, and brackets match. 0 or -EINVAL. */
int filter_syntax_check(const char *text, struct error *err);
/* Whether each name in it is a field of an event that the parsed filter is about. 0 or -EINVAL. */
int filter_syntax_check_fields(const char *text, struct tep_event_filter *parsed,
			       const struct event_table *events, struct error *err);
