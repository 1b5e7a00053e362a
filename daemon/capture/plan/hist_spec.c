/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/hist_spec.h"

#include <stdlib.h>

#include "base/caret.h"

#define SYNTAX                                                                                     \
	"write it as in 'sched_switch:keys=next_comm:vals=prev_state:size=4096 if next_prio < "    \
	"100'"
#define DIGITS_MAX 10

struct spec_parser {
	struct hist_spec *spec;
	const char *p;
	const char *wrong; /* what is wrong at p */
};

int hist_spec_refuse(const struct hist_spec *s, const char *at, int code, const char *why,
		     struct error *err)
{
	_cleanup_buf_ struct buf place = BUF_INIT;

	buf_put_caret(&place, s->text, at);
	return error_set(err, code, "the histogram: %s%s", why, buf_string(&place) ?: "");
}

static bool spec_fail(struct spec_parser *x, const char *at, const char *wrong)
{
	x->p = at;
	x->wrong = wrong;
	return false;
}

static bool spec_is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* A word follows the last field of a list. */
static bool spec_ends(char c)
{
	return !c || c == ':' || c == ' ' || c == ',';
}

static bool spec_take_field(struct spec_parser *x, struct hist_field *ret)
{
	*ret = (struct hist_field){ .name = x->p };
	while (spec_is_name(*x->p))
		x->p++;
	ret->len = (size_t)(x->p - ret->name);
	if (!ret->len)
		return spec_fail(x, x->p, "the name of a field is missing");
	if (*x->p == '.') {
		ret->modifier = ++x->p;
		while (spec_is_name(*x->p) || *x->p == '-' || *x->p == '=')
			x->p++;
		ret->modifier_len = (size_t)(x->p - ret->modifier);
		if (!ret->modifier_len)
			return spec_fail(x, x->p, "the modifier of the field is missing");
	}
	return spec_ends(*x->p) ||
	       spec_fail(x, x->p, "a field may have letters, digits, '_' and a modifier only");
}

static bool spec_take_fields(struct spec_parser *x, struct hist_field *fields, size_t *count,
			     size_t max, const char *too_many)
{
	if (*count)
		return spec_fail(x, x->p, "this part is there twice");
	for (;; x->p++) {
		if (*count == max)
			return spec_fail(x, x->p, too_many);
		if (!spec_take_field(x, &fields[*count]))
			return false;
		(*count)++;
		if (*x->p != ',')
			return true;
	}
}

static bool spec_take_size(struct spec_parser *x)
{
	const char *begin = x->p;
	size_t digits = strspn(begin, "0123456789");
	unsigned long size = digits && digits <= DIGITS_MAX ? strtoul(begin, NULL, 10) : 0;

	if (x->spec->size)
		return spec_fail(x, begin, "this part is there twice");
	if (size < HIST_SIZE_MIN || size > HIST_SIZE_MAX)
		return spec_fail(x, begin, "a histogram has 128 to 131072 entries");
	x->spec->size = (unsigned)size;
	x->p += digits;
	return spec_ends(*x->p) || spec_fail(x, x->p, "the number ends here");
}

/* Skips NAME and '=' if they are next. */
static bool spec_skip(struct spec_parser *x, const char *name)
{
	size_t len = strlen(name);

	if (strncmp(x->p, name, len) != 0 || x->p[len] != '=')
		return false;
	x->p += len + 1;
	return true;
}

static bool spec_take_part(struct spec_parser *x)
{
	struct hist_spec *s = x->spec;

	if (spec_skip(x, "keys") || spec_skip(x, "key"))
		return spec_take_fields(x, s->keys, &s->key_count, HIST_KEYS_MAX,
					"a histogram has three keys at most");
	if (spec_skip(x, "vals") || spec_skip(x, "values") || spec_skip(x, "val"))
		return spec_take_fields(x, s->values, &s->value_count, HIST_VALUES_MAX,
					"a histogram has two values at most, beside the hitcount");
	if (spec_skip(x, "size"))
		return spec_take_size(x);
	if (spec_skip(x, "sort"))
		return spec_fail(x, x->p, "the report sorts the entries, by any column (--sort)");
	return spec_fail(x, x->p, "its parts are keys=, vals= and size=");
}

/* The event's name may have a colon: the parts begin behind the last one before an '='. */
static bool spec_take_event(struct spec_parser *x)
{
	const char *equals = x->p + strcspn(x->p, "= "), *colon = equals;

	while (colon > x->p && *colon != ':')
		colon--;
	if (*equals == '=' && *x->p == ':' && colon == x->p)
		return spec_fail(x, x->p, "the event's name is missing");
	if (*equals != '=' || colon == x->p)
		return spec_fail(x, equals, "':keys=' and a field are missing behind the event");
	x->spec->event_len = (size_t)(colon - x->p);
	x->p = colon;
	return true;
}

static bool spec_take_filter(struct spec_parser *x)
{
	x->p += strspn(x->p, " ");
	if (strncmp(x->p, "if ", 3) != 0)
		return spec_fail(x, x->p, "'if' and a filter are missing");
	x->p += 3 + strspn(x->p + 3, " ");
	x->spec->filter = x->p;
	return *x->p || spec_fail(x, x->p, "the filter is missing");
}

static bool spec_take_all(struct spec_parser *x)
{
	if (!spec_take_event(x))
		return false;
	while (*x->p == ':') {
		x->p++;
		if (!spec_take_part(x))
			return false;
	}
	if (!x->spec->key_count)
		return spec_fail(x, x->p, "it has no keys");
	return !*x->p || spec_take_filter(x);
}

int hist_spec_parse(struct hist_spec *ret, const char *text, struct error *err)
{
	struct hist_spec spec = { .text = text };
	struct spec_parser x = { .spec = &spec, .p = text };

	if (!spec_take_all(&x)) {
		hist_spec_refuse(&spec, x.p, -EINVAL, x.wrong, err);
		return error_hint(err, SYNTAX);
	}
	spec.size = spec.size ?: HIST_SIZE_DEFAULT;
	*ret = spec;
	return 0;
}

/*
 * tracing_map_create(): two slots of 16 bytes for each entry, then the entry. A key has at most 256
 * bytes, or those of 31 addresses. Each field has a value and its comparison. Allocations are
 * rounded up.
 */
uint64_t hist_spec_memory(const struct hist_spec *s)
{
	uint64_t entry = 32 + 192 + 256 * s->key_count + 64 * (1 + s->key_count + s->value_count);
	uint64_t entries = HIST_SIZE_MIN;

	while (entries < s->size)
		entries *= 2;
	return entries * entry;
}

static void spec_put_fields(const char *name, const struct hist_field *fields, size_t count,
			    struct buf *out)
{
	for (size_t i = 0; i < count; i++) {
		const struct hist_field *f = &fields[i];

		buf_printf(out, "%s%.*s", i ? "," : name, (int)f->len, f->name);
		if (f->modifier_len)
			buf_printf(out, ".%.*s", (int)f->modifier_len, f->modifier);
	}
}

void hist_spec_put_trigger(const struct hist_spec *s, const char *command, struct buf *out)
{
	spec_put_fields("hist:keys=", s->keys, s->key_count, out);
	spec_put_fields(":vals=", s->values, s->value_count, out);
	buf_printf(out, ":size=%u:%s", s->size, command);
	if (s->filter)
		buf_printf(out, " if %s", s->filter);
}
