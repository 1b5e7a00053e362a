/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Filters of users who may not see the kernel's addresses. A filter that compares a closed field
 * (event_field.h) tells them the field's value. So the daemon parses such a filter before anything
 * is written to tracefs, with the kernel's own grammar: predicate_parse() and parse_pred() of
 * kernel/trace/trace_events_filter.c. What it cannot parse is refused.
 */
#pragma once

#include "daemon/capture/tracefs/events.h"

/* More different fields in one filter are refused: each costs a search in the event's format. */
#define USER_FILTER_FIELDS_MAX 32

/*
 * Checks a filter of one event ("system:event", for the message) with the text of its format file.
 * -EPERM: it compares a closed field. -EINVAL: no such field, or a syntax error. The message shows
 * the place with a caret.
 */
int user_filter_check(const char *event, const char *format, const char *filter, struct error *err);

/* Checks the filters of all matched events. */
int user_filters_check(const struct tracefs *fs, const struct event_matches *matches,
		       struct error *err);
