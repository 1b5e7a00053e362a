/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A machine's part of a JSON or a page, as this sink writes it: the lines of the kernel's text,
 * each behind its time, then the members of an object.
 */
#pragma once

#include "export/join.h"

struct json_part {
	struct part_reader reader;
	bool page;
	const char *line; /* the next one, in the reader, without its time */
	size_t len;	  /* with its end; 0: there are no more */
	uint64_t ts;	  /* ns, of the line or one before it */
	char key[32];	  /* the next member; "": none is read, or there are no more */
};

void json_part_deinit(struct json_part *p);
/*
 * Begins the text; to: gets the comments at its head. NULL: they are skipped. -EBADMSG: not such a
 * part; or -errno.
 */
int json_part_begin(struct json_part *p, struct output *to);
/* Reads the next line. 0, -EBADMSG or -errno. */
int json_part_next_line(struct json_part *p);
/* After the last line. Then json_part_next_key() goes from member to member. */
int json_part_begin_members(struct json_part *p);
int json_part_next_key(struct json_part *p);
/*
 * Copies the value of the member that was read last; of a list or an object, what is in it. to
 * NULL: skips it.
 */
int json_part_value(struct json_part *p, struct output *to);
