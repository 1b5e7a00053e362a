/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/stacks.h"

#include <string.h>

#include "print/printer.h"

/* Bytes of a stack's text, so that a table's JSON can be read again. */
#define STACK_TEXT_MAX 3000U

bool stacks_init(struct stacks *s, struct report *r, report_handler handler)
{
	const struct event *ev;
	const struct field *places;

	*s = (struct stacks){ .env = r->env };
	rows_init(&s->rows, sizeof(struct stack), NULL);
	s->rest.is_rest = true;
	if (!report_on(r->env, r, "ftrace", "kernel_stack", handler, &ev))
		return false;
	places = event_field(ev, "caller");
	if (!places)
		return false;
	s->offset = places->offset;
	s->word = r->env->info->layout.word_size;
	return true;
}

void stacks_deinit(struct stacks *s)
{
	rows_deinit(&s->rows);
}

/* The array goes on to the record's end; a place of all ones ends it earlier. */
static void stack_read(const struct stacks *s, const struct record *rec, struct stack *ret)
{
	const uint64_t end = s->word == 8 ? UINT64_MAX : UINT32_MAX;
	const bool big = s->env->big_endian;
	uint64_t at = s->offset, place;

	*ret = (struct stack){ .used = true };
	for (; at + s->word <= rec->len; at += s->word) {
		place = s->word == 8 ? load_u64(rec->data + at, big)
				     : load_u32(rec->data + at, big);
		if (place == end)
			return;
		if (ret->depth == STACK_DEPTH_MAX) {
			ret->is_cut = true;
			return;
		}
		ret->places[ret->depth++] = place;
	}
}

const struct stack *stacks_get(struct stacks *s, const struct trace_event *ev)
{
	struct stack stack, *known;
	struct row_key key;

	stack_read(s, &ev->rec, &stack);
	key = row_key_of_text((struct text){ (const char *)stack.places,
					     stack.depth * (uint32_t)sizeof(*stack.places) });
	key.b ^= stack.is_cut;
	if (s->rows.count == STACKS_MAX && !rows_find(&s->rows, key))
		return &s->rest;
	known = rows_get(&s->rows, key);
	if (known && !known->used)
		*known = stack;
	return known;
}

void table_put_stack(struct table *t, const struct report_env *env, const struct stack *stack)
{
	char text[STACK_TEXT_MAX + SYMBOL_TEXT_MAX + 8], *end = text;

	if (!stack || stack->is_rest || !stack->depth) {
		table_put_text(t, stack && stack->is_rest ? TEXT("(others)") : TEXT("?"));
		return;
	}
	for (uint32_t i = 0; i < stack->depth && end - text < (ptrdiff_t)STACK_TEXT_MAX; i++) {
		if (i)
			end = mempcpy(end, " < ", 3);
		end = stack->places[i] == TRAMPOLINE_ADDRESS
			      ? mempcpy(end, TRAMPOLINE_TEXT, strlen(TRAMPOLINE_TEXT))
			      : print_symbol(env->printer, end, stack->places[i], 's');
	}
	if (stack->is_cut)
		end = mempcpy(end, " ...", 4);
	table_put_text(t, (struct text){ text, (uint32_t)(end - text) });
}
