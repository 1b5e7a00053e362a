/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The head of an event's format file, before its print fmt: name, number, fields. The kernel writes
 * it in f_show() of kernel/trace/trace_events.c:
 *
 * 	name: sched_switch
 * 	ID: 314
 * 	format:
 * 		field:unsigned short common_type;	offset:0;	size:2;	signed:0;
 * 		...
 *
 * 		field:char prev_comm[16];	offset:8;	size:16;	signed:0;
 *
 * The text is hostile: any other form is refused.
 */
#pragma once

#include "print/event_table.h"

struct arena;

struct format_head {
	uint16_t id;
	const char *name;
	const struct field *common, *fields; /* fields before and after the first empty line */
	size_t common_count, field_count;
};

/*
 * ret points into the arena. -EBADMSG: not a format. -ERANGE: a field is longer than any record.
 * -ENOMEM.
 */
int format_head_parse(struct format_head *ret, const char *text, size_t len, unsigned word_size,
		      struct arena *arena);
