/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/user_filter.h"

#include <fcntl.h>
#include <string.h>

#include "base/caret.h"
#include "daemon/capture/plan/plan.h"
#include "daemon/capture/tracefs/event_field.h"
#include "daemon/capture/tracefs/print_format.h"

struct field_use {
	const char *name; /* in the filter */
	size_t len;
};

struct filter_parser {
	const char *text, *p;
	const char *wrong;				 /* what is wrong at p; NULL: nothing yet */
	struct field_use fields[USER_FILTER_FIELDS_MAX]; /* each name once, at its first place */
	size_t count;
	unsigned depth;
};

static bool filter_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The kernel also skips a byte of Latin 1, which is refused here. */
static void filter_skip_blanks(struct filter_parser *x)
{
	while (*x->p == ' ' || (*x->p >= '\t' && *x->p <= '\r'))
		x->p++;
}

static bool filter_fail(struct filter_parser *x, const char *wrong)
{
	x->wrong = wrong;
	return false;
}

static bool filter_take_field(struct filter_parser *x)
{
	struct field_use use = { .name = x->p };

	while (span_name_char(*x->p))
		x->p++;
	use.len = (size_t)(x->p - use.name);
	if (!use.len)
		return filter_fail(x, "the name of a field is missing");
	if (*x->p == '.')
		return filter_fail(x, "a user's filter may compare a field's value only");
	for (size_t i = 0; i < x->count; i++)
		if (x->fields[i].len == use.len &&
		    memcmp(x->fields[i].name, use.name, use.len) == 0)
			return true;
	if (x->count == USER_FILTER_FIELDS_MAX)
		return filter_fail(x, "a user's filter may have 32 different fields at most");
	x->fields[x->count++] = use;
	return true;
}

static bool filter_take_operator(struct filter_parser *x)
{
	/* Longer ones first. */
	static const char *const operators[] = { "==", "!=", "<=", ">=", "<", ">", "~", "&" };

	for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
		size_t len = strlen(operators[i]);

		if (strncmp(x->p, operators[i], len) != 0)
			continue;
		if (x->p[0] == '&' && x->p[1] == '&')
			break;
		x->p += len;
		return true;
	}
	return filter_fail(x, "an operator is missing (== != < <= > >= & ~)");
}

/* "CPUS{0-3}", of Linux 6.6. */
static bool filter_take_cpus(struct filter_parser *x)
{
	size_t len;

	if (strncmp(x->p, "CPUS{", 5) != 0)
		return false;
	len = strspn(x->p + 5, "0123456789,-:/ ");
	if (x->p[5 + len] != '}')
		return false;
	x->p += 5 + len + 1;
	return true;
}

static bool filter_take_value(struct filter_parser *x)
{
	if (*x->p == '"' || *x->p == '\'') {
		const char *close = strchr(x->p + 1, *x->p);

		if (!close)
			return filter_fail(x, "the closing quote is missing");
		x->p = close + 1;
		return true;
	}
	if (filter_is_digit(*x->p) || (*x->p == '-' && filter_is_digit(x->p[1]))) {
		/* Also hexadecimal. */
		for (x->p++; span_name_char(*x->p) && *x->p != '_';)
			x->p++;
		return true;
	}
	return filter_take_cpus(x) || filter_fail(x, "a number or a quoted text is missing");
}

static bool filter_take_predicate(struct filter_parser *x)
{
	/* A '!' before a predicate or a parenthesis; not "!=" or "!~". */
	for (;; x->p++) {
		filter_skip_blanks(x);
		if (*x->p == '(')
			x->depth++;
		else if (*x->p != '!' || x->p[1] == '=' || x->p[1] == '~')
			break;
	}
	if (!filter_take_field(x))
		return false;
	filter_skip_blanks(x);
	if (!filter_take_operator(x))
		return false;
	filter_skip_blanks(x);
	return filter_take_value(x);
}

/* Takes parentheses and the next && or ||. *ret_more: another predicate follows. */
static bool filter_take_joint(struct filter_parser *x, bool *ret_more)
{
	*ret_more = false;
	for (;; x->p++) {
		filter_skip_blanks(x);
		if (*x->p != ')')
			break;
		if (!x->depth)
			return filter_fail(x, "there is no '(' for this ')'");
		x->depth--;
	}
	if (!*x->p)
		return !x->depth || filter_fail(x, "a ')' is missing");
	if (strncmp(x->p, "&&", 2) != 0 && strncmp(x->p, "||", 2) != 0)
		return filter_fail(x, "&& or || is missing");
	x->p += 2;
	*ret_more = true;
	return true;
}

static bool filter_parse(struct filter_parser *x, const char *filter)
{
	bool more = true;

	*x = (struct filter_parser){ .text = filter, .p = filter };
	while (more)
		if (!filter_take_predicate(x) || !filter_take_joint(x, &more))
			return false;
	return true;
}

static void filter_put_open_fields(const char *format, struct buf *out)
{
	const char *at = format, *name;
	size_t len, count = 0;

	while ((len = event_field_next(&at, &name))) {
		if (strncmp(name, "common_", 7) == 0 ||
		    event_field_judge(format, name, len) != EVENT_FIELD_OPEN)
			continue;
		buf_printf(out, "%s%.*s", count++ ? ", " : "its open fields are ", (int)len, name);
	}
	if (count)
		buf_puts(out, "; ");
}

static int filter_refuse(const char *event, const char *format, const char *filter,
			 const struct field_use *use, enum event_field_kind kind, struct error *err)
{
	_cleanup_buf_ struct buf place = BUF_INIT, hint = BUF_INIT;
	bool missing = kind == EVENT_FIELD_MISSING;

	buf_put_caret(&place, filter, use->name);
	if (missing) {
		plan_put_fields(format, filter, &hint);
		error_set(err, -EINVAL, "the filter for %s: '%.*s' %s%s", event, (int)use->len,
			  use->name, event_field_reason(kind), buf_string(&place) ?: "");
		return error_hint(err, "%s",
				  hint.len ? buf_string(&hint) : "this event has no fields");
	}
	filter_put_open_fields(format, &hint);
	error_set(err, -EPERM, "the filter for %s: only root may compare '%.*s', which %s%s", event,
		  (int)use->len, use->name, event_field_reason(kind), buf_string(&place) ?: "");
	return error_hint(err,
			  "%sroot may do it, or allow it: \"raw_addresses = yes\" in [users] of "
			  "traced.conf",
			  buf_string(&hint) ?: "");
}

int user_filter_check(const char *event, const char *format, const char *filter, struct error *err)
{
	_cleanup_buf_ struct buf place = BUF_INIT;
	struct filter_parser x;

	if (!filter_parse(&x, filter)) {
		buf_put_caret(&place, filter, x.p);
		error_set(err, -EINVAL, "the filter for %s: %s%s", event, x.wrong,
			  buf_string(&place) ?: "");
		return error_hint(err, "write it as in 'next_prio < 100 && (next_pid == 1 || "
				       "next_comm ~ \"ssh*\")'");
	}
	for (size_t i = 0; i < x.count; i++) {
		enum event_field_kind kind =
			event_field_judge(format, x.fields[i].name, x.fields[i].len);

		if (kind != EVENT_FIELD_OPEN)
			return filter_refuse(event, format, filter, &x.fields[i], kind, err);
	}
	return 0;
}

int user_filters_check(const struct tracefs *fs, const struct event_matches *matches,
		       struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < matches->count && r == 0; i++) {
		const struct event_match *m = &matches->items[i];
		_cleanup_buf_ struct buf format = BUF_INIT;
		char path[512];

		if (!m->filter)
			continue;
		event_file(m->name, "format", path, sizeof(path));
		r = tracefs_read(tracefs_root(fs), path, &format);
		if (r < 0)
			return tracefs_unreadable(err, r, path);
		if (!buf_string(&format))
			return error_set(err, -ENOMEM, "out of memory");
		r = user_filter_check(m->name, format.data, m->filter, err);
	}
	return r;
}
