/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Arguments of traced functions (trace options func-args and funcgraph-args, Linux 6.15). */
#pragma once

#include "print/event_table.h"

struct arguments; /* the functions of one recorded kernel */

/*
 * Copies and adds the text of an ARGUMENTS chunk. Creates *t if it is NULL. Returns 0 or -ENOMEM.
 */
int arguments_add(struct arguments **t, const char *text, size_t len);
struct arguments *arguments_free(struct arguments *t);

/* Appends the function's line and the lines that it refers to; nothing if there is none. */
void arguments_put_lines(const struct arguments *t, const char *function, struct buf *out);

/*
 * Appends "(name=value, ...)". args holds count words as the machine recorded them. An unknown
 * function gives "()", as the kernel prints where its BTF has no such function.
 */
void print_arguments(struct printer *p, uint64_t func, const uint8_t *args, size_t count,
		     struct buf *out);
