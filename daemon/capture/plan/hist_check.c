/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks the fields of a histogram before anything is armed. */
#include <stdlib.h>

#include "daemon/capture/plan/hists.h"
#include "daemon/capture/plan/user_filter.h"
#include "daemon/capture/tracefs/event_field.h"

struct hist_checker {
	const struct hist_spec *spec;
	const char *event, *format;
	bool hidden;
};

/* The kernel's modifiers: get_hist_field_flags(). */
struct modifier {
	const char *name;
	const char *only; /* the only field that takes it; NULL: any number */
	bool of_key, of_value;
	bool closed; /* tells names of addresses that a user may choose */
};

static const struct modifier modifiers[] = {
	{ "hex", NULL, true, true, false },
	{ "sym", NULL, true, false, true },
	{ "sym-offset", NULL, true, false, true },
	{ "execname", "common_pid", true, false, false },
	{ "syscall", NULL, true, false, false },
	{ "log2", NULL, true, false, false },
	{ "buckets", NULL, true, false, false },
	{ "usecs", "common_timestamp", true, false, false },
	{ "stacktrace", NULL, true, false, true },
	{ "percent", NULL, false, true, false },
	{ "graph", NULL, false, true, false },
};

enum hist_kind { HIST_MISSING, HIST_NUMBER, HIST_TEXT, HIST_STACK, HIST_OTHER };

static bool field_is(const struct hist_field *f, const char *name)
{
	return f->len == strlen(name) && memcmp(f->name, name, f->len) == 0;
}

/* The event's own field comes first. */
static enum hist_kind checker_kind(const struct hist_checker *x, const struct hist_field *f)
{
	static const char *const numbers[] = { "common_timestamp", "common_cpu", "cpu",
					       "hitcount" };
	const char *at = x->format;
	struct event_field own;

	while (event_field_describe(&at, &own)) {
		if (own.name_len != f->len || memcmp(own.name, f->name, f->len) != 0)
			continue;
		return own.filter == EVENT_FILTER_NUMBER ? HIST_NUMBER
		       : own.filter == EVENT_FILTER_TEXT ? HIST_TEXT
							 : HIST_OTHER;
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (field_is(f, numbers[i]))
			return HIST_NUMBER;
	return field_is(f, "stacktrace") || field_is(f, "common_stacktrace") ? HIST_STACK
									     : HIST_MISSING;
}

static int checker_missing(const struct hist_checker *x, const struct hist_field *f,
			   struct error *err)
{
	_cleanup_buf_ struct buf name = BUF_INIT, hint = BUF_INIT;

	buf_printf(&name, "%.*s ==", (int)f->len, f->name);
	if (buf_string(&name))
		plan_put_fields(x->format, name.data, &hint);
	hist_spec_refuse(x->spec, f->name, -EINVAL, "there is no such field", err);
	return error_hint(err, "%s",
			  buf_string(&hint) && hint.len ? hint.data : "the event has no fields");
}

/* "buckets=100" is the only one with a number. Returns NULL: there is no such modifier. */
static const struct modifier *checker_find_modifier(const struct hist_field *f)
{
	size_t len = f->modifier_len;
	const char *equals = memchr(f->modifier, '=', len);

	if (equals)
		len = (size_t)(equals - f->modifier);
	for (size_t i = 0; i < ARRAY_SIZE(modifiers); i++) {
		const struct modifier *m = &modifiers[i];
		bool numbered = strcmp(m->name, "buckets") == 0;

		if (strlen(m->name) == len && memcmp(m->name, f->modifier, len) == 0)
			return numbered == !!equals ? m : NULL;
	}
	return NULL;
}

static bool modifier_has_number(const struct hist_field *f)
{
	const char *equals = memchr(f->modifier, '=', f->modifier_len);
	size_t digits = equals ? strspn(equals + 1, "0123456789") : 0;

	return !equals || (digits && digits < 18 && equals[1] != '0' &&
			   equals + 1 + digits == f->modifier + f->modifier_len);
}

static int checker_refuse_modifier(const struct hist_checker *x, const struct hist_field *f,
				   bool key, const char *why, struct error *err)
{
	_cleanup_buf_ struct buf all = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(modifiers); i++) {
		const struct modifier *m = &modifiers[i];

		if (key ? m->of_key : m->of_value)
			buf_printf(&all, "%s.%s%s", all.len ? " " : "", m->name,
				   strcmp(m->name, "buckets") ? "" : "=N");
	}
	hist_spec_refuse(x->spec, f->modifier, -EINVAL, why, err);
	return error_hint(err, "a %s may have %s", key ? "key" : "value", buf_string(&all) ?: "");
}

static int checker_check_modifier(const struct hist_checker *x, const struct hist_field *f,
				  bool key, enum hist_kind kind, struct error *err)
{
	const struct modifier *m = checker_find_modifier(f);
	bool of_stack = m && strcmp(m->name, "stacktrace") == 0;

	if (!m)
		return checker_refuse_modifier(x, f, key, "there is no such modifier", err);
	if (!(key ? m->of_key : m->of_value))
		return checker_refuse_modifier(
			x, f, key, key ? "it is a modifier of values" : "it is a modifier of keys",
			err);
	if (!modifier_has_number(f))
		return checker_refuse_modifier(x, f, key, "a bucket has a size above 0", err);
	if (m->only ? !field_is(f, m->only) : !of_stack && kind != HIST_NUMBER) {
		hist_spec_refuse(x->spec, f->name, -EINVAL, "the modifier is not of this field",
				 err);
		return error_hint(err, ".%s is of %s", m->name, m->only ?: "numbers");
	}
	if (!m->closed || !x->hidden)
		return 0;
	hist_spec_refuse(x->spec, f->modifier, -EPERM, "only root may see names of addresses", err);
	return error_hint(err, "root may do it, or allow it: \"raw_addresses = yes\" in [users] of "
			       "traced.conf");
}

/* The hitcount and the names that the kernel adds have no addresses, but for stacks. */
static int checker_check_open(const struct hist_checker *x, const struct hist_field *f,
			      enum hist_kind kind, struct error *err)
{
	enum event_field_kind judged = event_field_judge(x->format, f->name, f->len);
	_cleanup_buf_ struct buf why = BUF_INIT;

	if (kind == HIST_STACK)
		judged = EVENT_FIELD_STACK;
	if (judged == EVENT_FIELD_OPEN || judged == EVENT_FIELD_MISSING)
		return 0;
	buf_printf(&why, "only root may count by '%.*s', which %s", (int)f->len, f->name,
		   event_field_reason(judged));
	hist_spec_refuse(x->spec, f->name, -EPERM, buf_string(&why) ?: "", err);
	return error_hint(err, "root may do it, or allow it: \"raw_addresses = yes\" in [users] of "
			       "traced.conf");
}

static int checker_check_field(const struct hist_checker *x, const struct hist_field *f, bool key,
			       struct error *err)
{
	enum hist_kind kind = checker_kind(x, f);
	int r = 0;

	if (kind == HIST_MISSING || (key && field_is(f, "hitcount") && kind == HIST_NUMBER))
		return checker_missing(x, f, err);
	if (!key && kind != HIST_NUMBER) {
		hist_spec_refuse(x->spec, f->name, -EINVAL,
				 "a value is a number, this field is none", err);
		return error_hint(err, "it may be a key");
	}
	if (f->modifier_len)
		r = checker_check_modifier(x, f, key, kind, err);
	return r == 0 && x->hidden ? checker_check_open(x, f, kind, err) : r;
}

int hist_check(const struct hist_spec *s, const char *event, const char *format, bool hidden,
	       struct error *err)
{
	const struct hist_checker x = { s, event, format, hidden };
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->key_count; i++)
		r = checker_check_field(&x, &s->keys[i], true, err);
	for (size_t i = 0; r == 0 && i < s->value_count; i++)
		r = checker_check_field(&x, &s->values[i], false, err);
	if (r == 0 && hidden && s->size > HISTS_USER_SIZE_MAX) {
		error_set(err, -EPERM, "only root may have a histogram of more than %u entries",
			  HISTS_USER_SIZE_MAX);
		return error_hint(err, "their memory is the kernel's; ask for less (size=)");
	}
	return r == 0 && hidden && s->filter ? user_filter_check(event, format, s->filter, err) : r;
}
