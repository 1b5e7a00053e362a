/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decides which fields of an event a user may compare who may not see the kernel's addresses.
 *
 * The problem: an output shows an address as a symbol or as a hash, but the kernel compares the
 * address itself. A user who filters by "call_site >= N" and counts the events finds the address
 * in 30 recordings. The same holds for whatever else the kernel does by a field's value: triggers,
 * keys of histograms, SQL. All of them must ask event_field_judge().
 *
 * The rule: a field is open if its value is no address, by its type, or if the event's text shows
 * the value as a number. Then comparing it reveals what every recording shows. All other fields
 * are closed, also those about which the format says too little.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum event_field_kind {
	EVENT_FIELD_OPEN,
	EVENT_FIELD_MISSING,   /* neither the event's nor one of the names that the kernel adds */
	EVENT_FIELD_POINTER,   /* by its type */
	EVENT_FIELD_STACK,     /* the kernel's "stacktrace" */
	EVENT_FIELD_COMPOUND,  /* an array or structure: may hold anything */
	EVENT_FIELD_NAMED,     /* its name says that it is an address: "call_site", "ip" */
	EVENT_FIELD_PRINTED,   /* printed by %p, %pS and the like */
	EVENT_FIELD_NOT_SHOWN, /* large enough for an address, and the text does not show its value
				*/
};

/* format: the text of the event's format file. name need not end at len. */
enum event_field_kind event_field_judge(const char *format, const char *name, size_t len);
/* A clause that follows the field's name: "is a pointer". */
const char *event_field_reason(enum event_field_kind kind);

/* The next field that the format lists, after *at, which begins as the format. 0: no more. */
size_t event_field_next(const char **at, const char **ret_name);

/* How the kernel's filters compare a field: filter_assign_type(). */
enum event_field_filter {
	EVENT_FILTER_NONE,
	EVENT_FILTER_NUMBER,
	EVENT_FILTER_TEXT,
	EVENT_FILTER_CPUS, /* Linux 6.6+ */
};

/* A field as its format declares it. The texts point into the format and are not terminated. */
struct event_field {
	const char *name, *type, *array; /* array: "[16]", or empty */
	size_t name_len, type_len, array_len;
	unsigned long size; /* bytes in the record */
	bool is_signed;
	enum event_field_filter filter;
};
/* Takes the next field, like event_field_next. False: no more. */
bool event_field_describe(const char **at, struct event_field *ret);
/* Ended by NULL. */
const char *const *event_field_operators(enum event_field_filter filter);
