/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "filter/filter.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/event_glob.h"
#include "filter/expression.h"

#define EVENT_HINT                                                                                 \
	"events come before a colon: 'sched_switch: next_prio < 100'; the recording must have "    \
	"them"
#define FIELD_HINT "'tracectl events --fields NAME' shows an event's fields"
/* Texts are compared up to this length. */
#define FIELD_TEXT_MAX 4096

/* A text of the filter, and where each event that it is about has its fields. */
struct filter_part {
	const char *text;
	char *events; /* owned: globs */
	struct expression expression;
	const struct field ***fields; /* owned; by event id: NULL, or by node; then owned */
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
	for (size_t i = 0; p->fields && i < EVENT_IDS; i++)
		free(p->fields[i]);
	free(p->fields);
	p->fields = NULL;
}

struct filter *filter_free(struct filter *f)
{
	if (!f)
		return NULL;
	for (size_t i = 0; i < f->count; i++) {
		filter_part_unbind(&f->parts[i]);
		expression_deinit(&f->parts[i].expression);
		free(f->parts[i].events);
	}
	free(f->parts);
	buf_deinit(&f->text);
	free(f);
	return NULL;
}

/* "a, b/c": a glob of a system or an event, or of both. */
static bool filter_part_names(const struct filter_part *p, const struct event *ev)
{
	_cleanup_free_ char *all = strdup(p->events);
	char *rest = all, *word;

	while ((word = strsep(&rest, ", \t"))) {
		char *slash = strchr(word, '/');

		if (slash)
			*slash = ':';
		if (*word && event_glob_has(word, ev->system, ev->name))
			return true;
	}
	return false;
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
	return (n->kind == EXPRESSION_NUMBER && !strcmp(n->name, "CPU")) ||
	       (n->kind == EXPRESSION_TEXT && !strcmp(n->name, "COMM"));
}

/* Whether a field has values of the node's kind. */
static bool filter_suits(const struct expression_node *n, const struct field *f)
{
	if (n->kind == EXPRESSION_TEXT)
		return f->is_string;
	return !f->is_string && !f->is_array && !f->is_dynamic && is_number_size(f->size);
}

static int filter_bind_event(struct filter_part *p, const struct event *ev, bool *known)
{
	const struct field **fields = calloc(p->expression.count, sizeof(*fields));

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
	for (size_t i = 0; i < p->expression.count; i++) {
		const struct expression_node *n = &p->expression.nodes[i];

		if (known[i])
			continue;
		error_set(err, -EINVAL, "--filter '%s': no event of it has a %s field '%s'",
			  p->text, n->kind == EXPRESSION_TEXT ? "text" : "number", n->name);
		return error_hint(err, FIELD_HINT);
	}
	return 0;
}

static int filter_bind(struct filter_part *p, const struct event_table *events, struct error *err)
{
	bool known[EXPRESSION_NODES_MAX] = { false };
	size_t count;
	const struct event *const *all = event_table_all(events, &count);
	bool any = false;

	filter_part_unbind(p);
	p->fields = calloc(EVENT_IDS, sizeof(*p->fields));
	if (!p->fields)
		return error_errno(err, -ENOMEM, "can't begin the filter");
	for (size_t i = 0; i < count; i++) {
		if (!filter_part_names(p, all[i]))
			continue;
		any = true;
		if (filter_bind_event(p, all[i], known) < 0)
			return error_errno(err, -ENOMEM, "can't begin the filter");
	}
	if (any)
		return filter_check_known(p, known, err);
	error_set(err, -EINVAL, "--filter '%s': no event found", p->text);
	return error_hint(err, EVENT_HINT);
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

/* -1, 0 or 1: how value compares with the node's number. */
static int filter_compare(const struct expression_node *n, const struct field *f, uint64_t value)
{
	const unsigned bits = f ? f->size * 8 : 64;
	bool is_negative = f && f->is_signed && value >> (bits - 1) & 1;
	uint64_t size = value;

	if (is_negative)
		size = -(bits < 64 ? value | ~UINT64_C(0) << bits : value);
	if (is_negative != (n->is_negative && n->number))
		return is_negative ? -1 : 1;
	if (size == n->number)
		return 0;
	return (size < n->number) != is_negative ? -1 : 1;
}

static bool filter_number_holds(const struct expression_node *n, const struct field *f,
				uint64_t value)
{
	int c = filter_compare(n, f, value);

	switch (n->op) {
	case OP_EQ:
		return c == 0;
	case OP_NE:
		return c != 0;
	case OP_LT:
		return c < 0;
	case OP_LE:
		return c <= 0;
	case OP_GT:
		return c > 0;
	case OP_GE:
		return c >= 0;
	default:
		return value & (n->is_negative ? -n->number : n->number);
	}
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
		return (regexec(&n->regex, text, 0, NULL, 0) == 0) != n->negated;
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

static bool filter_leaf_holds(const struct filter *f, const struct expression_node *n,
			      const struct field *field, const struct trace_event *ev)
{
	char text[FIELD_TEXT_MAX];
	const struct task *task;
	uint64_t value;

	if (!field && n->kind == EXPRESSION_NUMBER)
		return filter_is_pseudo(n) && filter_number_holds(n, NULL, ev->cpu);
	if (n->kind == EXPRESSION_NUMBER)
		return record_read_uint(f->info->events, &ev->rec, field->offset, field->size,
					&value) &&
		       filter_number_holds(n, field, value);
	if (field)
		return filter_read_text(f, field, &ev->rec, text) && filter_text_holds(n, text);
	if (!filter_is_pseudo(n))
		return false;
	task = ev->pid > 0 ? task_table_find(f->info->tasks, ev->pid, ev->rec.ts) : NULL;
	return filter_text_holds(n, task ? task->comm : ev->pid ? "<...>" : "<idle>");
}

static bool filter_holds(const struct filter *f, const struct filter_part *p, uint32_t at,
			 const struct trace_event *ev)
{
	const struct expression_node *n = &p->expression.nodes[at];

	switch (n->kind) {
	case EXPRESSION_OR:
		return filter_holds(f, p, n->left, ev) || filter_holds(f, p, n->right, ev);
	case EXPRESSION_AND:
		return filter_holds(f, p, n->left, ev) && filter_holds(f, p, n->right, ev);
	case EXPRESSION_NOT:
		return !filter_holds(f, p, n->left, ev);
	default:
		return filter_leaf_holds(f, n, p->fields[ev->id][at], ev);
	}
}

static bool filter_takes(void *userdata, const struct trace_event *ev)
{
	const struct filter *f = userdata;

	for (size_t i = 0; i < f->count; i++)
		if (f->parts[i].fields[ev->id] &&
		    filter_holds(f, &f->parts[i], f->parts[i].expression.root, ev))
			return true;
	return false;
}

static int filter_part_parse(struct filter_part *p, const char *text, struct error *err)
{
	const char *colon = strchr(text, ':');

	p->text = text;
	if (!colon) {
		error_set(err, -EINVAL, "--filter '%s' names no event", text);
		return error_hint(err, EVENT_HINT);
	}
	p->events = strndup(text, (size_t)(colon - text));
	if (!p->events)
		return error_errno(err, -ENOMEM, "can't begin the filter");
	return expression_parse(&p->expression, text, colon + 1, err);
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
