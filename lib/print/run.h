/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A running program. program.c runs values and short texts, run_text.c the other ops. */
#pragma once

#include <string.h>

#include "print/printer.h"

/*
 * The output has room for all ops of known size from the start (prog->bound). An op that appends
 * more reserves its size and the bound again, so that the small ops need no checks.
 */
struct run {
	const struct program *prog;
	struct printer *p;
	const struct record *rec;
	struct buf *out;
	char *w, *limit;
	uint64_t stack[OP_STACK_MAX + 4];
	unsigned depth;
	size_t marks[OP_SLOTS];
	bool swap, truncated, no_memory;
	uint8_t word_size;
};

/* Runs the ops after OP_DEC that program.c does not run. */
void run_text(struct run *r, const struct op *op);
bool run_make_room(struct run *r, size_t n);

/* Reserves n bytes and the bound for the remaining ops. Keeps the output so far. */
static inline bool run_room(struct run *r, size_t n)
{
	return likely((size_t)(r->limit - r->w) >= n + r->prog->bound) || run_make_room(r, n);
}

static inline void run_put(struct run *r, const char *text, size_t len)
{
	if (!run_room(r, len))
		return;
	memcpy(r->w, text, len);
	r->w += len;
}

static inline uint64_t run_pop(struct run *r)
{
	return r->stack[--r->depth];
}

static inline void run_push(struct run *r, uint64_t v)
{
	r->stack[r->depth++] = v;
}

/* Memory in the record. NULL: part of it lies outside. */
static inline const uint8_t *run_memory(struct run *r, uint64_t offset, uint64_t len)
{
	if (offset > r->rec->len || len > r->rec->len - offset) {
		r->truncated = true;
		return NULL;
	}
	return r->rec->data + offset;
}

/* Between these two calls other printers may append to the buffer. */
static inline struct buf *run_enter_buf(struct run *r)
{
	r->out->len = (size_t)(r->w - r->out->data);
	return r->out;
}

static inline void run_leave_buf(struct run *r)
{
	r->w = r->out->data + r->out->len;
	r->limit = r->out->data + r->out->cap;
	if (r->out->failed)
		r->no_memory = true;
	else
		run_room(r, 0);
}
