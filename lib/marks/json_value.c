/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/json_value.h"

#include <inttypes.h>
#include <math.h>

#include "marks/sort.h"

/* Stores a number; integers exactly. */
static void value_put_number(struct buf *out, const struct text *key, struct buf *spelled)
{
	const char *text = buf_string(spelled);
	double d;
	char *end;

	if (!text)
		return;
	if (!strpbrk(text, ".eE")) {
		errno = 0;
		/* A negative zero is no integer. */
		if (*text == '-' && strcmp(text, "-0") != 0) {
			long long v = strtoll(text, &end, 10);

			if (!errno)
				return value_put_u64(out, key, VALUE_INT, (uint64_t)v);
		} else if (*text != '-') {
			unsigned long long v = strtoull(text, &end, 10);

			if (!errno)
				return value_put_u64(out, key,
						     v > INT64_MAX ? VALUE_UINT : VALUE_INT, v);
		}
	}
	d = strtod(text, NULL);
	if (isinf(d))
		value_put_text(out, key, text_of(spelled));
	else
		value_put_u64(out, key, VALUE_DOUBLE, *(const uint64_t *)(const void *)&d);
}

static int value_too_much(struct json_read *json, struct error *err, const char *what)
{
	return error_set(err, -EFBIG, "at byte %" PRIu64 ": %s", json_read_offset(json), what);
}

static void value_put_token(struct json_read *json, int token, const struct text *key,
			    struct buf *out)
{
	switch (token) {
	case JSON_STRING:
		value_put_text(out, key, text_of(&json->text));
		break;
	case JSON_NUMBER:
		value_put_number(out, key, &json->text);
		break;
	case JSON_OBJECT:
		value_put(out, key, VALUE_DICT);
		break;
	case JSON_ARRAY:
		value_put(out, key, VALUE_LIST);
		break;
	case JSON_OBJECT_END:
	case JSON_ARRAY_END:
		value_put(out, NULL, VALUE_END);
		break;
	case JSON_TRUE:
		value_put(out, key, VALUE_TRUE);
		break;
	case JSON_FALSE:
		value_put(out, key, VALUE_FALSE);
		break;
	default:
		value_put(out, key, VALUE_NULL);
	}
}

int json_value_read(struct json_read *json, int token, const struct text *key, bool members,
		    struct buf *out, struct error *err)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	struct text member;
	unsigned level = 0;

	for (;;) {
		bool outer = members && (!level || (level == 1 && token == JSON_OBJECT_END));

		if (token == JSON_OBJECT || token == JSON_ARRAY)
			level++;
		else if (token == JSON_OBJECT_END || token == JSON_ARRAY_END)
			level--;
		if (level >= VALUE_DEPTH_MAX - 1)
			return value_too_much(json, err, "values are nested too deep");
		if (token == JSON_KEY) {
			buf_clear(&name);
			buf_append(&name, json->text.data, json->text.len);
		} else if (!outer) {
			value_put_token(json, token, key, out);
		}
		if (buf_error(out) < 0 || buf_error(&name) < 0)
			return error_errno(err, -ENOMEM, "can't read it");
		if (out->len > MARK_PACKED_MAX)
			return value_too_much(json, err, "a value is too long");
		if (token != JSON_KEY && !level)
			return 0;
		member = text_of(&name);
		key = token == JSON_KEY ? &member : NULL;
		token = json_read_next(json, err);
		if (token < 0)
			return token;
	}
}

struct memory {
	const char *p;
	size_t left;
};

static ssize_t read_memory(void *userdata, void *data, size_t len)
{
	struct memory *m = userdata;
	size_t n = MIN(m->left, len);

	memcpy(data, m->p, n);
	m->p += n;
	m->left -= n;
	return (ssize_t)n;
}

int json_value_put(struct buf *out, const struct text *key, struct text text)
{
	struct memory m = { text.data, text.len };
	size_t before = out->len;
	struct json_read json;
	int r = json_read_init(&json, read_memory, &m, text.len);

	if (r == 0)
		r = json_read_next(&json, NULL);
	if (r > 0)
		r = json_value_read(&json, r, key, false, out, NULL);
	if (r == 0)
		r = json_read_next(&json, NULL);
	json_read_deinit(&json);
	if (r < 0)
		out->len = before;
	return r;
}
