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

/* The arguments of one call. */
struct argument_iter {
	struct printer *p;
	const uint8_t *words; /* as the machine recorded them; borrowed */
	size_t count, next;
	const char *line; /* the rest of the function's line */
	/* The current argument. */
	const char *name; /* not terminated; "..." where the recorded words end */
	size_t name_len;
	const char *type; /* NULL: no value */
};

/* func: its address. A function without a line has no arguments. Borrows p and words. */
void argument_iter_init(struct argument_iter *it, struct printer *p, uint64_t func,
			const uint8_t *words, size_t count);
bool argument_next(struct argument_iter *it);
/* Appends the value in the kernel's form. Needs a type; call once after each argument_next(). */
void argument_put(struct argument_iter *it, struct buf *out);

/*
 * Appends "(name=value, ...)". args holds count words as the machine recorded them. An unknown
 * function gives "()", as the kernel prints where its BTF has no such function.
 */
void print_arguments(struct printer *p, uint64_t func, const uint8_t *args, size_t count,
		     struct buf *out);
