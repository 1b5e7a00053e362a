/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "filter/filter.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/event_names.h"
#include "filter/expression.h"

#define EVENT_HINT "begin with the events: 'sched_switch: next_prio < 100'"
#define FIELD_HINT "'tracectl events --fields NAME' shows an event's fields"
/* Texts are compared up to this length. */
#define FIELD_TEXT_MAX 4096

/* A text of the filter, and where each event that it is about has its fields. */
struct filter_part {
	const char *text;
	size_t names_len;	      /* of the events' names, at the text's begin */
	struct expression expression; /* no nodes: it takes each event */
	const struct field ***fields; /* owned; by event id: NULL, or by node; then owned */
	size_t ids;		      /* of fields */
};

struct filter {
	struct event_filter ops;
	struct filter_part *parts; /* owned */
	size_t count;
	const struct trace_info *info;
	struct buf text;
};

static void filter_part_unbind(struct filter_part *p)
{
	for (size_t i = 0; i < p->ids; i++)
		free(p->fields[i]);
	free(p->fields);
	p->fields = NULL;
	p->ids = 0;
}

struct filter *filter_free(struct filter *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; i < f->count; i++) {
		filter_part_unbind(&f->parts[i]);
		expression_deinit(&f->parts[i].expression);
	}
	free(f->parts);
	buf_deinit(&f->text);
	free(f);
	return NULL;
}

static const struct field *filter_find_field(const struct event *ev, const char *name)
{
	const struct field *f = event_field(ev, name);

	for (size_t i = 0; !f && i < ev->common_count; i++)
		if (!strcmp(ev->common[i].name, name))
			f = &ev->common[i];
	return f;
}

static bool filter_is_pseudo(const struct expression_node *n)
{
	return (n->kind == EXPRESSION_FIELD && !strcmp(n->name, "CPU")) ||
	       (n->kind == EXPRESSION_TEXT && !strcmp(n->name, "COMM"));
}

static bool filter_is_number(const struct field *f)
{
	return !f->is_string && !f->is_array && !f->is_dynamic && is_number_size(f->size);
}

/* Whether a field has values of the node's kind. A number has a text, too. */
static bool filter_suits(const struct expression_node *n, const struct field *f)
{
	return filter_is_number(f) || (n->kind == EXPRESSION_TEXT && f->is_string);
}

static int filter_bind_event(struct filter_part *p, const struct event *ev, bool *known)
{
	const struct field **fields = calloc(p->expression.count + 1, sizeof(*fields));

	if (!fields)
		return -ENOMEM;
	for (size_t i = 0; i < p->expression.count; i++) {
		const struct expression_node *n = &p->expression.nodes[i];
		const struct field *f = n->name ? filter_find_field(ev, n->name) : NULL;

		if (f && filter_suits(n, f))
			fields[i] = f;
		known[i] |= fields[i] || !n->name || filter_is_pseudo(n);
	}
	free(p->fields[ev->id]);
	p->fields[ev->id] = fields;
	return 0;
}

static int filter_check_known(const struct filter_part *p, const bool *known, struct error *err)
{
	char what[300];

	for (size_t i = 0; i < p->expression.count; i++) {
		const struct expression_node *n = &p->expression.nodes[i];

		if (known[i])
			continue;
		snprintf(what, sizeof(what), "none of these events has a %s '%.200s'",
			 n->kind == EXPRESSION_TEXT ? "field" : "number field", n->name);
		expression_error(p->text, n->at, err, what);
		return error_hint(err, FIELD_HINT);
	}
	return 0;
}

static int filter_bind(struct filter_part *p, const struct event_table *events, struct error *err)
{
	bool known[EXPRESSION_NODES_MAX] = { false };
	size_t count, ids = 0;
	const struct event *const *all = event_table_all(events, &count);
	_cleanup_free_ bool *chosen = calloc(count + 1, sizeof(*chosen));
	int r;

	filter_part_unbind(p);
	for (size_t i = 0; i < count; i++)
		ids = MAX(ids, (size_t)all[i]->id + 1);
	p->fields = calloc(ids + 1, sizeof(*p->fields));
	if (!p->fields || !chosen)
		return error_errno(err, -ENOMEM, "can't begin the filter");
	p->ids = ids;
	r = event_names_choose(p->text, p->names_len, all, count, chosen, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		if (chosen[i] && filter_bind_event(p, all[i], known) < 0)
			return error_errno(err, -ENOMEM, "can't begin the filter");
	return filter_check_known(p, known, err);
}

static int filter_begin(void *userdata, const struct trace_info *info, struct error *err)
{
	struct filter *f = userdata;
	int r = 0;

	f->info = info;
	for (size_t i = 0; r == 0 && i < f->count; i++)
		r = filter_bind(&f->parts[i], info->events, err);
	return r;
}

static bool filter_text_holds(const struct expression_node *n, const char *text)
{
	switch (n->op) {
	case OP_EQ:
		return !strcmp(text, n->text);
	case OP_NE:
		return strcmp(text, n->text) != 0;
	case OP_GLOB:
		return fnmatch(n->text, text, 0) == 0;
	default:
		return (regexec(&n->regex, text, 0, NULL, 0) == 0) == (n->op == OP_MATCH);
	}
}

/* False: it is not in the record. */
static bool filter_read_text(const struct filter *f, const struct field *field,
			     const struct record *rec, char text[FIELD_TEXT_MAX])
{
	uint64_t at = field->offset, size = field->size, word;
	size_t len;

	if (field->is_dynamic) {
		if (!record_read_uint(f->info->events, rec, field->offset, sizeof(uint32_t), &word))
			return false;
		at = (word & 0xffff) + (field->is_relative ? at + size : 0);
		size = word >> 16;
	} else if (!size && at < rec->len) {
		/* An array without a length ends with the record. */
		size = rec->len - at;
	}
	if (at + size > rec->len)
		return false;
	len = strnlen((const char *)rec->data + at,
		      (size_t)MIN(size, (uint64_t)FIELD_TEXT_MAX - 1));
	memcpy(text, rec->data + at, len);
	text[len] = '\0';
	return true;
}

/* False: it is not in the record. */
static bool filter_read_number(const struct filter *f, const struct field *field,
			       const struct trace_event *ev, struct number *ret)
{
	uint64_t value;

	if (!record_read_uint(f->info->events, &ev->rec, field->offset, field->size, &value))
		return false;
	*ret = number_of_field(value, field->size, field->is_signed);
	return true;
}

/* A number compared with a text: a long or a pointer is the name of a function, if it is in one. */
static void filter_name_number(const struct filter *f, const struct field *field, uint64_t value,
			       char text[FIELD_TEXT_MAX])
{
	struct symbol symbol;

	if ((field->is_pointer || strstr(field->type, "long")) &&
	    event_table_find_symbol(f->info->events, value, &symbol))
		snprintf(text, FIELD_TEXT_MAX, "%s", symbol.name);
	else
		snprintf(text, FIELD_TEXT_MAX, "0x%" PRIx64, value);
}

/* Not inlined: the text is too large for the stack of a recursion. */
static _noinline_ bool filter_text_node_holds(const struct filter *f,
					      const struct expression_node *n,
					      const struct field *field,
					      const struct trace_event *ev)
{
	char text[FIELD_TEXT_MAX];
	const struct task *task;
	struct number number;

	if (!field && filter_is_pseudo(n)) {
		task = ev->pid > 0 ? task_table_find(f->info->tasks, ev->pid, ev->rec.ts) : NULL;
		return filter_text_holds(n, task ? task->comm : ev->pid ? "<...>" : "<idle>");
	}
	if (!field)
		return false;
	if (field->is_string)
		return filter_read_text(f, field, &ev->rec, text) && filter_text_holds(n, text);
	if (!filter_read_number(f, field, ev, &number))
		return false;
	if (n->is_char && n->op <= OP_NE)
		return number_compare(n->op, number, number_of_literal((uint8_t)n->text[0]));
	filter_name_number(f, field, number.bits, text);
	return filter_text_holds(n, text);
}

/* The event that a part of the filter is asked about. */
struct filter_look {
	const struct filter *f;
	const struct expression_node *nodes;
	const struct field *const *fields; /* by node */
	const struct trace_event *ev;
};

/* False: the event lacks a field of it, or it can't be computed. */
static bool filter_compute(const struct filter_look *l, uint32_t at, struct number *ret)
{
	const struct expression_node *n = &l->nodes[at];
	struct number left, right;

	if (n->kind == EXPRESSION_ARITHMETIC)
		return filter_compute(l, n->left, &left) && filter_compute(l, n->right, &right) &&
		       number_compute(n->op, left, right, ret);
	*ret = n->kind == EXPRESSION_LITERAL ? n->number : number_of_literal(l->ev->cpu);
	if (n->kind == EXPRESSION_FIELD && l->fields[at])
		return filter_read_number(l->f, l->fields[at], l->ev, ret);
	return n->kind == EXPRESSION_LITERAL || filter_is_pseudo(n);
}

static bool filter_holds(const struct filter_look *l, uint32_t at)
{
	const struct expression_node *n = &l->nodes[at];
	struct number left, right;

	switch (n->kind) {
	case EXPRESSION_LOGIC:
		return n->op == OP_OR ? filter_holds(l, n->left) || filter_holds(l, n->right)
				      : filter_holds(l, n->left) && filter_holds(l, n->right);
	case EXPRESSION_NOT:
		return !filter_holds(l, n->left);
	case EXPRESSION_COMPARISON:
		return filter_compute(l, n->left, &left) && filter_compute(l, n->right, &right) &&
		       number_compare(n->op, left, right);
	case EXPRESSION_TEXT:
		return filter_text_node_holds(l->f, n, l->fields[at], l->ev);
	default:
		return filter_compute(l, at, &left) && left.bits;
	}
}

static bool filter_part_takes(const struct filter *f, const struct filter_part *p,
			      const struct trace_event *ev)
{
	const struct filter_look look = { f, p->expression.nodes,
					  ev->id < p->ids ? p->fields[ev->id] : NULL, ev };

	return look.fields && (!p->expression.count || filter_holds(&look, p->expression.root));
}

static bool filter_takes(void *userdata, const struct trace_event *ev)
{
	const struct filter *f = userdata;

	for (size_t i = 0; i < f->count; i++)
		if (filter_part_takes(f, &f->parts[i], ev))
			return true;
	return false;
}

/* A colon may also stand between a system and its event: then another one follows. */
static size_t filter_names_len(const char *text)
{
	size_t len = strcspn(text, ":"), more;

	while (text[len] &&
	       (more = strcspn(text + len + 1, ":\"'<>=&|~!()+%"), text[len + 1 + more] == ':'))
		len += 1 + more;
	return len;
}

static int filter_part_parse(struct filter_part *p, const char *text, struct error *err)
{
	const char first = text[strspn(text, " \t\n")];

	p->text = text;
	p->names_len = filter_names_len(text);
	if (!first || first == ':' || strcspn(text, "\"'<>=&~") < p->names_len) {
		expression_error(text, text, err, "the names of events should be here");
		return error_hint(err, EVENT_HINT);
	}
	return text[p->names_len]
		       ? expression_parse(&p->expression, text, text + p->names_len + 1, err)
		       : 0;
}

static bool filter_wants_tasks(const struct filter *f)
{
	for (size_t i = 0; i < f->count; i++)
		for (size_t j = 0; j < f->parts[i].expression.count; j++)
			if (f->parts[i].expression.nodes[j].kind == EXPRESSION_TEXT &&
			    filter_is_pseudo(&f->parts[i].expression.nodes[j]))
				return true;
	return false;
}

int filter_new(struct filter **ret, const char *const *texts, size_t count, struct error *err)
{
	_cleanup_(filter_freep) struct filter *f = calloc(1, sizeof(*f));
	int r = 0;

	if (f)
		f->parts = calloc(count, sizeof(*f->parts));
	if (!f || !f->parts)
		return error_errno(err, -ENOMEM, "can't begin the filter");
	f->count = count;
	for (size_t i = 0; i < count && r == 0; i++) {
		buf_printf(&f->text, "%s%s", i ? " or " : "", texts[i]);
		r = filter_part_parse(&f->parts[i], texts[i], err);
	}
	if (r < 0)
		return r;
	if (!buf_string(&f->text))
		return error_errno(err, -ENOMEM, "can't begin the filter");
	f->ops = (struct event_filter){ filter_begin, filter_takes, f->text.data,
					filter_wants_tasks(f), f };
	*ret = TAKE_PTR(f);
	return 0;
}

const struct event_filter *filter_event_filter(const struct filter *f)
{
	return &f->ops;
}
