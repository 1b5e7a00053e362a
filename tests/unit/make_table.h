/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A table with one event, from its fields and print fmt, and the text of its records. */
#pragma once

#include "print/event_table.h"

#define FIELD(type, name, offset, size, is_signed)                                                 \
	"\tfield:" type " " name ";\toffset:" #offset ";\tsize:" #size ";\tsigned:" #is_signed ";" \
	"\n"

extern const struct event_table_env native;

/* The kernel's text from 0xffffffff81000000 on; "func" is at 0xffffffff81001000. */
struct symbols *table_symbols(void *userdata);
struct event_table *make_table(const char *system, const char *name, const char *fields,
			       const char *print_fmt, const struct event_table_env *env);
/* Prints a record of the table's event; returns what event_print() returns. */
int table_print(struct event_table *t, const uint8_t *data, uint32_t len, struct buf *out);
