/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The head of an event's format file, in front of its print fmt: name, number, fields. Its form is
 * that of trace_event_raw_print and f_show in the kernel's kernel/trace/trace_events.c:
 *
 *	name: sched_switch
 *	ID: 314
 *	format:
 *		field:unsigned short common_type;	offset:0;	size:2;	signed:0;
 *		...
 *
 *		field:char prev_comm[16];	offset:8;	size:16;	signed:0;
 *
 * Whatever does not have it is refused: the text is hostile.
 */
#pragma once

#include "print/event_table.h"

struct arena;

struct format_head {
	uint16_t id;
	const char *name;
	const struct field *common, *fields; /* up to the first empty line; behind it */
	size_t common_count, field_count;
};

/*
 * What ret points to is in the arena. -EBADMSG: it is no format; -ERANGE: a field is longer than
 * any record; -ENOMEM.
 */
int format_head_parse(struct format_head *ret, const char *text, size_t len, unsigned word_size,
		      struct arena *arena);
