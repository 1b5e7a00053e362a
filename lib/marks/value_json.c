/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/value_json.h"

#include <inttypes.h>
#include <math.h>

#include "base/json.h"

void json_put_text(struct buf *out, struct text text)
{
	buf_putc(out, '"');
	json_escape(out, text.data, text.len);
	buf_putc(out, '"');
}

void json_put_us(struct buf *out, uint64_t ns)
{
	if (ns % 1000)
		buf_printf(out, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
	else
		buf_printf(out, "%" PRIu64, ns / 1000);
}

static void json_put_double(struct buf *out, double d)
{
	if (isnan(d))
		buf_puts(out, "\"NaN\"");
	else if (isinf(d))
		buf_puts(out, d > 0 ? "\"Infinity\"" : "\"-Infinity\"");
	else
		buf_printf(out, d == 0 && signbit(d) ? "-0.0" : "%.17g", d);
}

/* A reference must have the same spelling as the id it refers to. */
static bool is_id_ref(const struct value *v)
{
	return v->type == VALUE_INT && v->i >= 0 && text_equal(v->key, TEXT("id_ref"));
}

void json_put_value(struct buf *out, const struct value *v)
{
	switch (v->type) {
	case VALUE_TRUE:
		buf_puts(out, "true");
		break;
	case VALUE_FALSE:
		buf_puts(out, "false");
		break;
	case VALUE_INT:
		buf_printf(out, is_id_ref(v) ? "\"0x%" PRIx64 "\"" : "%" PRId64, v->i);
		break;
	case VALUE_UINT:
		buf_printf(out, "%" PRIu64, v->u);
		break;
	case VALUE_DOUBLE:
		json_put_double(out, v->d);
		break;
	case VALUE_POINTER:
		buf_printf(out, "\"0x%" PRIx64 "\"", v->u);
		break;
	case VALUE_STRING:
		json_put_text(out, v->text);
		break;
	case VALUE_LIST:
		buf_putc(out, '[');
		break;
	case VALUE_DICT:
		buf_putc(out, '{');
		break;
	default:
		buf_puts(out, "null");
	}
}

void json_put_members(struct buf *out, struct text members)
{
	json_put_changed_members(out, members, NULL, NULL);
}

void json_put_changed_members(struct buf *out, struct text members, json_change_t *change,
			      void *userdata)
{
	char closing[VALUE_DEPTH_MAX];
	struct value_iter it;
	struct value v;
	unsigned depth = 0;

	value_iter_init(&it, members, true);
	while (value_next(&it, &v)) {
		if (v.type == VALUE_END) {
			buf_putc(out, closing[--depth]);
			continue;
		}
		if (change)
			change(&v, depth, userdata);
		json_put_comma(out);
		if (v.key.data) {
			json_put_text(out, v.key);
			buf_putc(out, ':');
		}
		json_put_value(out, &v);
		if (v.type == VALUE_LIST || v.type == VALUE_DICT)
			closing[depth++] = v.type == VALUE_LIST ? ']' : '}';
	}
	/* Truncated values: close what is open. */
	while (depth)
		buf_putc(out, closing[--depth]);
}
