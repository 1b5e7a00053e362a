/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sql.h"

#include <string.h>

#include "base/vec.h"
#include "kernel/event_list.h"

/* Formats that one SQL text may need: words that are events' names, too. */
#define FORMATS_MAX 64

/* All events that an SQL text may name. */
struct sql_events {
	struct event_list kernel;   /* the kernel's own */
	struct sql_format *formats; /* owned; those of the recording come first */
	size_t format_count, format_cap, own_count;
};

static void sql_events_forget(struct sql_events *e, size_t from)
{
	for (size_t i = from; i < e->format_count; i++) {
		free(e->formats[i].system);
		free(e->formats[i].text);
	}
	e->format_count = from;
}

static void sql_events_deinit(struct sql_events *e)
{
	sql_events_forget(e, 0);
	free(e->formats);
	event_list_deinit(&e->kernel);
}

/* Takes the text. */
static int sql_events_add(struct sql_events *e, const char *system, size_t len, char *text)
{
	struct sql_format f = { strndup(system, len), text };

	if (f.system && f.text && vec_push(e->formats, e->format_count, e->format_cap, f) == 0)
		return 0;
	free(f.system);
	free(f.text);
	return -ENOMEM;
}

static int sql_events_read_format(struct sql_events *e, const char *name, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = event_list_format(&e->kernel, name, &text, err);

	if (r < 0)
		return r;
	return !buf_string(&text) ||
			       sql_events_add(e, name, strcspn(name, ":"), TAKE_PTR(text.data)) < 0
		       ? error_set(err, -ENOMEM, "out of memory")
		       : 0;
}

/* True if the text has the word, alone or between dots: "sched_waking", "sched.sched_waking". */
static bool sql_has_word(const char *sql, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = sql; (p = strstr(p, word)); p++)
		if ((p == sql || !sql_is_word_char(p[-1])) && !sql_is_word_char(p[len]))
			return true;
	return false;
}

/* Loads the formats of the kernel's events that the SQL names. */
static int sql_events_load(struct sql_events *e, const char *sql, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < e->kernel.count && r == 0; i++) {
		const char *colon = strchr(e->kernel.names[i], ':');

		if (!colon || !sql_has_word(sql, colon + 1))
			continue;
		if (e->format_count - e->own_count == FORMATS_MAX)
			return error_set(err, -E2BIG, "the SQL names more than %d events",
					 FORMATS_MAX);
		r = sql_events_read_format(e, e->kernel.names[i], err);
	}
	return r;
}

static int sql_events_add_probes(struct sql_events *e, const struct options *o)
{
	int r = 0;

	for (size_t i = 0; i < o->probe_count && r == 0; i++) {
		_cleanup_free_ char *name = NULL;
		char *format = sql_format_of_probe(o->probes[i].definition, &name);

		if (format)
			r = sql_events_add(e, SQL_OWN_SYSTEM, strlen(SQL_OWN_SYSTEM), format);
	}
	e->own_count = e->format_count;
	return r;
}

/* Keeps a string until the request is sent. NULL: out of memory. */
static char *sql_keep(struct sql_request *s, const char *text, size_t len)
{
	char *copy = strndup(text, len);

	if (!copy || vec_reserve_exact(s->texts, s->text_count, 1) < 0) {
		free(copy);
		return NULL;
	}
	s->texts[s->text_count++] = copy;
	return copy;
}

#define SQL_APPEND "' >> "
#define SQL_HIST "echo 'hist:"

/* A cursor over the text that libtracefs wrote. */
struct sql_output {
	struct sql_request *request;
	const char *at;
};

/* Takes the words before `end`, and moves behind it. NULL: there is no such end in this line. */
static char *sql_take_to(struct sql_output *x, const char *line_end, const char *end)
{
	const char *found = memmem(x->at, (size_t)(line_end - x->at), end, strlen(end));
	char *text = found ? sql_keep(x->request, x->at, (size_t)(found - x->at)) : NULL;

	if (text)
		x->at = found + strlen(end);
	return text;
}

static bool sql_skip(struct sql_output *x, const char *word)
{
	if (strncmp(x->at, word, strlen(word)) != 0)
		return false;
	x->at += strlen(word);
	return true;
}

/* "MOUNT/events/SYSTEM/EVENT/trigger": the event, ":EVENT" if it is the recording's own. */
static char *sql_take_event(struct sql_request *s, const char *path, size_t len)
{
	static const char begin[] = "/events/", end[] = "/trigger";
	const char *p = memmem(path, len, begin, strlen(begin)), *slash, *stop;
	_cleanup_buf_ struct buf event = BUF_INIT;

	if (!p)
		return NULL;
	p += strlen(begin);
	slash = memchr(p, '/', (size_t)(path + len - p));
	stop = path + len - strlen(end);
	if (!slash || stop <= slash + 1 || memcmp(stop, end, strlen(end)) != 0)
		return NULL;
	if ((size_t)(slash - p) != strlen(SQL_OWN_SYSTEM) ||
	    memcmp(p, SQL_OWN_SYSTEM, strlen(SQL_OWN_SYSTEM)) != 0)
		buf_append(&event, p, (size_t)(slash - p));
	buf_putc(&event, ':');
	buf_append(&event, slash + 1, (size_t)(stop - slash - 1));
	return buf_string(&event) ? sql_keep(s, event.data, event.len) : NULL;
}

/*
 * Splits "echo 'COMMAND' >> PATH", or with another `to`; a command may have an apostrophe. Returns
 * the rest's begin.
 */
static const char *sql_next_command(const char *text, const char *to, struct sql_output *x,
				    const char **ret_end, const char **ret_path,
				    size_t *ret_path_len)
{
	static const char begin[] = "echo '";
	const char *line_end = strchr(text, '\n'), *last = NULL;

	if (!line_end || strncmp(text, begin, strlen(begin)) != 0)
		return NULL;
	x->at = text + strlen(begin);
	for (const char *p = x->at; (p = memmem(p, (size_t)(line_end - p), to, strlen(to))); p++)
		last = p;
	if (!last)
		return NULL;
	*ret_end = last;
	*ret_path = last + strlen(to);
	*ret_path_len = (size_t)(line_end - *ret_path);
	return line_end + 1;
}

/* "hist:keys=KEYS:VARIABLES if FILTER", with ":onmatch(EVENT).NAME(ARGUMENTS)" before the filter.
 */
static bool sql_split_hist(struct sql_output *x, const char *end, Traced__Control__SqlSide *side,
			   char **ret_arguments)
{
	const char *filter = memmem(x->at, (size_t)(end - x->at), " if ", 4);
	const char *stop = filter ?: end;

	if (!sql_skip(x, "hist:keys="))
		return false;
	if (memchr(x->at, ':', (size_t)(stop - x->at)))
		side->keys = sql_take_to(x, stop, ":");
	else
		side->keys = sql_keep(x->request, x->at, (size_t)(stop - x->at));
	if (ret_arguments) {
		side->variables = sql_take_to(x, stop, ":onmatch(");
		x->at = memchr(x->at, ')', (size_t)(stop - x->at)) ?: stop;
		x->at = memchr(x->at, '(', (size_t)(stop - x->at)) ?: stop;
		if (x->at == stop || stop[-1] != ')')
			return false;
		*ret_arguments = sql_keep(x->request, x->at + 1, (size_t)(stop - x->at - 2));
	} else if (stop > x->at && x->at[-1] == ':') {
		side->variables = sql_keep(x->request, x->at, (size_t)(stop - x->at));
	}
	if (filter)
		side->filter = sql_keep(x->request, filter + 4, (size_t)(end - filter - 4));
	return side->keys && side->variables && side->filter;
}

/* The new syntax of arguments has the event's name first: "trace(NAME,$a,$b)". */
static char *sql_plain_arguments(char *arguments, const char *name)
{
	size_t len = strlen(name);
	char *to;

	if (strncmp(arguments, name, len) == 0 && arguments[len] == ',')
		arguments += len + 1;
	to = arguments;
	for (const char *p = arguments; *p; p++)
		if (*p != '$')
			*to++ = *p;
	*to = '\0';
	return arguments;
}

/* "s:NAME FIELDS", or without "s:" on kernels that have no dynamic_events. */
static bool sql_split_fields(struct sql_output *x, const char *end, const char *name,
			     Traced__Control__Sql *sql)
{
	sql_skip(x, "s:");
	if (!sql_skip(x, name) || !sql_skip(x, " "))
		return false;
	sql->fields = sql_keep(x->request, x->at, (size_t)(end - x->at));
	return sql->fields;
}

static bool sql_split(struct sql_request *s, Traced__Control__Sql *sql, const char *text)
{
	struct sql_output x = { .request = s };
	const char *end, *path;
	char *arguments = NULL;
	size_t len;

	text = sql_next_command(text, SQL_APPEND, &x, &end, &path, &len);
	if (!text || !sql_split_fields(&x, end, sql->name, sql))
		return false;
	text = sql_next_command(text, SQL_APPEND, &x, &end, &path, &len);
	if (!text || !sql_split_hist(&x, end, sql->start, NULL))
		return false;
	sql->start->event = sql_take_event(s, path, len);
	text = sql_next_command(text, SQL_APPEND, &x, &end, &path, &len);
	if (!text || !sql_split_hist(&x, end, sql->end, &arguments) || !arguments)
		return false;
	sql->end->event = sql_take_event(s, path, len);
	sql->arguments = sql_plain_arguments(arguments, sql->name);
	return sql->start->event && sql->end->event;
}

/* "echo 'hist:keys=a.log2,b:vals=c if FILTER' > PATH", of SQL of one event. */
static int sql_take_hist(struct sql_request *s, const struct options *o, const char *name,
			 const char *text, struct error *err)
{
	_cleanup_buf_ struct buf hist = BUF_INIT;
	struct sql_output x = { .request = s };
	const char *end, *path, *filter;
	char *event = NULL;
	size_t len;
	int r;

	if (sql_next_command(text, "' > ", &x, &end, &path, &len) && sql_skip(&x, "hist:"))
		event = sql_take_event(s, path, len);
	if (!event)
		return error_set(err, -EBADMSG, "libtracefs made something unexpected of '%s'",
				 name);
	filter = memmem(x.at, (size_t)(end - x.at), " if ", 4);
	len = (size_t)((filter ?: end) - x.at);
	if (filter)
		filter = sql_keep(s, filter + 4, (size_t)(end - filter - 4));
	r = sql_hist_of_event(o, event, x.at, len, filter, &hist, err);
	if (r == 0 && buf_string(&hist))
		s->hist = sql_keep(s, hist.data, hist.len);
	return r < 0 || s->hist ? r : error_set(err, -ENOMEM, "out of memory");
}

/* The histogram of the event that the last SQL makes. */
static int sql_count_last(struct sql_request *s, const struct options *o, struct error *err)
{
	_cleanup_buf_ struct buf hist = BUF_INIT;
	int r = sql_hist_of_sql(o, s->list[s->count - 1], &hist, err);

	if (r == 0 && buf_string(&hist))
		s->hist = sql_keep(s, hist.data, hist.len);
	return r < 0 || s->hist ? r : error_set(err, -ENOMEM, "out of memory");
}

static int sql_request_add(struct sql_request *s, const struct options *o,
			   const struct sql_option *option, struct sql_events *events,
			   struct error *err)
{
	bool counts = o->counts_sql && option == &o->sql[o->sql_count - 1];
	size_t number = s->count;
	Traced__Control__Sql *sql = &s->items[number];
	_cleanup_buf_ struct buf text = BUF_INIT;
	char made_up[24], *format;
	int r;

	snprintf(made_up, sizeof(made_up), "sql%zu", number + 1);
	*sql = (Traced__Control__Sql)TRACED__CONTROL__SQL__INIT;
	sql->start = &s->sides[2 * number];
	sql->end = &s->sides[2 * number + 1];
	*sql->start = *sql->end = (Traced__Control__SqlSide)TRACED__CONTROL__SQL_SIDE__INIT;
	sql->only_counted = o->counts_sql;
	s->list[s->count++] = sql;
	sql->name = sql_keep(s, option->name ?: made_up, strlen(option->name ?: made_up));
	sql->text = sql_keep(s, option->text, strlen(option->text));
	if (!sql->name || !sql->text)
		return error_set(err, -ENOMEM, "out of memory");
	r = sql_check_option_name(sql->name, err);
	if (r == 0)
		r = sql_check_text(sql->text, sql->name, err);
	if (r == 0)
		r = sql_events_load(events, sql->text, err);
	if (r == 0)
		r = sql_parse(sql->name, sql->text, counts, events->formats, events->format_count,
			      &text, err);
	sql_events_forget(events, events->own_count);
	if (r < 0)
		return r;
	if (counts && buf_string(&text) && strncmp(text.data, SQL_HIST, strlen(SQL_HIST)) == 0) {
		s->count--;
		return sql_take_hist(s, o, sql->name, text.data, err);
	}
	r = sql_check_casts(sql->name, sql->text, err);
	if (r < 0)
		return r;
	if (!buf_string(&text) || !sql_split(s, sql, text.data))
		return error_set(err, -EBADMSG, "libtracefs made something unexpected of '%s'",
				 sql->name);
	/* The next SQL may name this event. */
	format = sql_format_of_fields(sql->name, sql->fields);
	r = sql_events_add(events, SQL_OWN_SYSTEM, strlen(SQL_OWN_SYSTEM), format);
	events->own_count = events->format_count;
	return r < 0 ? error_set(err, -ENOMEM, "out of memory") : 0;
}

int sql_request_fill(struct sql_request *ret, const struct options *o, struct error *err)
{
	_cleanup_(sql_events_deinit) struct sql_events events = { 0 };
	int r;

	if (!o->sql_count)
		return 0;
	ret->items = calloc(o->sql_count, sizeof(*ret->items));
	ret->list = calloc(o->sql_count, sizeof(*ret->list));
	ret->sides = calloc(2 * o->sql_count, sizeof(*ret->sides));
	if (!ret->items || !ret->list || !ret->sides)
		return error_set(err, -ENOMEM, "out of memory");
	r = event_list_init(&events.kernel, o, err);
	if (r == 0 && sql_events_add_probes(&events, o) < 0)
		r = error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < o->sql_count && r == 0; i++)
		r = sql_request_add(ret, o, &o->sql[i], &events, err);
	return r == 0 && o->counts_sql && !ret->hist ? sql_count_last(ret, o, err) : r;
}

void sql_request_deinit(struct sql_request *s)
{
	for (size_t i = 0; i < s->text_count; i++)
		free(s->texts[i]);
	free(s->texts);
	free(s->items);
	free(s->list);
	free(s->sides);
	*s = (struct sql_request){ 0 };
}
