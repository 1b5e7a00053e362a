/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Encoding of a value: its type, its key within an object, then its bits or its text. */
#include "marks/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void value_put(struct buf *out, const struct text *key, enum value_type type)
{
	buf_putc(out, (char)type);
	if (!key || type == VALUE_END)
		return;
	buf_append(out, &key->len, sizeof(key->len));
	buf_append(out, key->data, key->len);
}

void value_put_u64(struct buf *out, const struct text *key, enum value_type type, uint64_t bits)
{
	value_put(out, key, type);
	buf_append(out, &bits, sizeof(bits));
}

void value_put_text(struct buf *out, const struct text *key, struct text text)
{
	value_put(out, key, VALUE_STRING);
	buf_append(out, &text.len, sizeof(text.len));
	buf_append(out, text.data, text.len);
}

void value_iter_init(struct value_iter *it, struct text values, bool members)
{
	it->p = (const uint8_t *)values.data;
	it->end = it->p ? it->p + values.len : it->p;
	it->depth = 0;
	it->dict[0] = members;
}

static bool value_take(struct value_iter *it, void *to, size_t len)
{
	if ((size_t)(it->end - it->p) < len)
		return false;
	memcpy(to, it->p, len);
	it->p += len;
	return true;
}

static bool value_take_text(struct value_iter *it, struct text *ret)
{
	if (!value_take(it, &ret->len, sizeof(ret->len)) || (size_t)(it->end - it->p) < ret->len)
		return false;
	ret->data = (const char *)it->p;
	it->p += ret->len;
	return true;
}

static bool value_take_any(struct value_iter *it, struct value *v)
{
	uint8_t type;

	if (!value_take(it, &type, sizeof(type)) || type < VALUE_NULL || type > VALUE_END)
		return false;
	*v = (struct value){ .type = type };
	if (type == VALUE_END)
		return it->depth-- > 0;
	if (it->dict[it->depth] && !value_take_text(it, &v->key))
		return false;
	switch (v->type) {
	case VALUE_INT:
	case VALUE_UINT:
	case VALUE_DOUBLE:
	case VALUE_POINTER:
		return value_take(it, &v->u, sizeof(v->u));
	case VALUE_STRING:
		return value_take_text(it, &v->text);
	case VALUE_LIST:
	case VALUE_DICT:
		if (it->depth + 1 == VALUE_DEPTH_MAX)
			return false;
		it->dict[++it->depth] = v->type == VALUE_DICT;
		return true;
	default:
		return true;
	}
}

bool value_next(struct value_iter *it, struct value *ret)
{
	if (it->p < it->end && value_take_any(it, ret))
		return true;
	it->p = it->end;
	return false;
}

void value_skip(struct value_iter *it)
{
	unsigned depth = it->depth;
	struct value v;

	while (it->depth >= depth && value_next(it, &v))
		;
}

bool value_number(const struct value *v, double *ret)
{
	switch (v->type) {
	case VALUE_INT:
		*ret = (double)v->i;
		return true;
	case VALUE_UINT:
	case VALUE_POINTER:
		*ret = (double)v->u;
		return true;
	case VALUE_DOUBLE:
		*ret = v->d;
		return true;
	default:
		return false;
	}
}

bool value_next_number(struct value_iter *it, struct value *ret, uint64_t *others)
{
	double d;

	while (value_next(it, ret)) {
		if (value_number(ret, &d) && isfinite(d))
			return true;
		if (ret->type == VALUE_LIST || ret->type == VALUE_DICT)
			value_skip(it);
		++*others;
	}
	return false;
}

bool value_spell_id(const struct value *v, char to[static 20], struct text *ret)
{
	if (v->type == VALUE_STRING) {
		*ret = v->text;
		return true;
	}
	if (v->type != VALUE_UINT && v->type != VALUE_POINTER && (v->type != VALUE_INT || v->i < 0))
		return false;
	*ret = (struct text){ to, (uint32_t)snprintf(to, 20, "0x%" PRIx64, v->u) };
	return true;
}

bool value_find(struct text members, const char *key, struct value *ret)
{
	struct text wanted = { key, (uint32_t)strlen(key) };
	struct value_iter it;

	value_iter_init(&it, members, true);
	while (value_next(&it, ret)) {
		if (text_equal(ret->key, wanted))
			return true;
		if (ret->type == VALUE_LIST || ret->type == VALUE_DICT)
			value_skip(&it);
	}
	return false;
}
