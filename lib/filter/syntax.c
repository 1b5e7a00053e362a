/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "filter/syntax.h"

#include <ctype.h>
#include <event-parse.h>
#include <string.h>

#define DEPTH_MAX 32
#define OPERATORS "<>=!~&|^+-*/"

enum filter_token {
	TOKEN_END,
	TOKEN_NAME,
	TOKEN_VALUE,
	TOKEN_OPERATOR,
	TOKEN_NOT,
	TOKEN_BRACKET,
	TOKEN_WRONG
};

struct filter_word {
	enum filter_token token;
	const char *at;
	size_t len;
};

static bool filter_is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The next token at or after p; its end is at + len. */
static struct filter_word filter_next_word(const char *p)
{
	struct filter_word w = { .at = p + strspn(p, " \t\n"), .len = 1 };

	p = w.at;
	if (!*p) {
		w.len = 0;
	} else if (*p == '"' || *p == '\'') {
		w.len += strcspn(p + 1, *p == '"' ? "\"" : "'");
		w.token = p[w.len] ? TOKEN_VALUE : TOKEN_WRONG;
		w.len += p[w.len] != '\0';
	} else if (filter_is_name(*p)) {
		w.token = isdigit((unsigned char)*p) ? TOKEN_VALUE : TOKEN_NAME;
		while (filter_is_name(p[w.len]))
			w.len++;
	} else if (*p == '!' && p[1] != '=' && p[1] != '~') {
		w.token = TOKEN_NOT;
	} else if (strchr(OPERATORS, *p)) {
		w.token = TOKEN_OPERATOR;
		w.len += p[1] && strchr("<>=~&|", p[1]);
	} else {
		w.token = *p == '(' || *p == ')' ? TOKEN_BRACKET : TOKEN_WRONG;
	}
	return w;
}

/* The expression of a filter, behind its events; "": none. */
static const char *filter_expression(const char *text)
{
	const char *colon = strchr(text, ':');

	return colon ? colon + 1 : "";
}

static int filter_refuse_word(const char *text, const struct filter_word *w, struct error *err)
{
	if (w->token == TOKEN_END)
		error_set(err, -EINVAL, "--filter '%s': it ends early", text);
	else
		error_set(err, -EINVAL, "--filter '%s': '%.*s' can't be there", text,
			  (int)MIN(w->len, (size_t)64), w->at);
	return error_hint(err, FILTER_HINT);
}

int filter_syntax_check(const char *text, struct error *err)
{
	struct filter_word w = filter_next_word(filter_expression(text));
	bool has_operand = false;
	unsigned depth = 0;

	if (!strchr(text, ':'))
		return 0;
	for (; w.token != TOKEN_END; w = filter_next_word(w.at + w.len)) {
		bool opens = w.token == TOKEN_BRACKET && *w.at == '(';
		bool closes = w.token == TOKEN_BRACKET && !opens;
		bool wants_operand = opens || w.token == TOKEN_NAME || w.token == TOKEN_VALUE ||
				     w.token == TOKEN_NOT;

		if (wants_operand == has_operand || (closes && !depth) ||
		    (opens && depth == DEPTH_MAX) || w.token == TOKEN_WRONG)
			return filter_refuse_word(text, &w, err);
		depth += opens;
		depth -= closes;
		has_operand = closes || w.token == TOKEN_NAME || w.token == TOKEN_VALUE;
	}
	return has_operand && !depth ? 0 : filter_refuse_word(text, &w, err);
}

/* A glob in quotes as a regular expression in quotes. */
static void filter_put_regex(const struct filter_word *w, struct buf *out)
{
	const char quote = *w->at;

	buf_printf(out, "%c^", quote);
	for (size_t i = 1; i + 1 < w->len; i++) {
		char c = w->at[i];

		if (c == '*')
			buf_puts(out, ".*");
		else if (c == '?')
			buf_putc(out, '.');
		else if (strchr(".^$\\", c))
			buf_printf(out, "\\%c", c);
		else
			buf_putc(out, c);
	}
	buf_printf(out, "$%c", quote);
}

static bool filter_is_glob(const struct filter_word *w)
{
	return w->token == TOKEN_OPERATOR && w->len == 1 && *w->at == '~';
}

int filter_syntax_translate(const char *text, struct buf *out)
{
	const char *from = text;
	struct filter_word w = filter_next_word(filter_expression(text));

	while (w.token != TOKEN_END) {
		struct filter_word next = filter_next_word(w.at + w.len);

		if (filter_is_glob(&w) && next.token == TOKEN_VALUE && next.len > 1 &&
		    !isdigit((unsigned char)*next.at)) {
			buf_append(out, from, (size_t)(w.at - from));
			buf_puts(out, "=~ ");
			filter_put_regex(&next, out);
			from = next.at + next.len;
			next = filter_next_word(from);
		}
		w = next;
	}
	buf_puts(out, from);
	return buf_error(out);
}

/* libtraceevent takes these besides fields. */
static bool filter_is_known(const struct filter_word *w)
{
	static const char *const known[] = { "COMM", "CPU", "TIMESTAMP", "TRUE", "FALSE",
					     "comm", "cpu", "true",	 "false" };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strlen(known[i]) == w->len && !strncmp(known[i], w->at, w->len))
			return true;
	return false;
}

static bool filter_is_field(const struct field *fields, size_t count, const struct filter_word *w)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(fields[i].name) == w->len && !strncmp(fields[i].name, w->at, w->len))
			return true;
	return false;
}

int filter_syntax_check_fields(const char *text, struct tep_event_filter *parsed,
			       const struct event_table *events, struct error *err)
{
	struct filter_word w = filter_next_word(filter_expression(text));
	size_t count;
	const struct event *const *all = event_table_all(events, &count);

	for (; w.token != TOKEN_END; w = filter_next_word(w.at + w.len)) {
		bool known = w.token != TOKEN_NAME || filter_is_known(&w);

		for (size_t i = 0; i < count && !known; i++)
			known = tep_event_filtered(parsed, all[i]->id) &&
				(filter_is_field(all[i]->fields, all[i]->field_count, &w) ||
				 filter_is_field(all[i]->common, all[i]->common_count, &w));
		if (known)
			continue;
		error_set(err, -EINVAL, "--filter '%s': no event of it has a field '%.*s'", text,
			  (int)MIN(w.len, (size_t)64), w.at);
		return error_hint(err, FILTER_HINT);
	}
	return 0;
}
