/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/json_read.h"

#include <stdarg.h>

int json_read_init(struct json_read *r, ssize_t (*read)(void *, void *, size_t), void *userdata,
		   size_t text_max)
{
	*r = (struct json_read){
		.read = read,
		.userdata = userdata,
		.text_max = text_max,
		.window = malloc(JSON_READ_WINDOW),
		.keep = true,
	};
	return r->window ? 0 : -ENOMEM;
}

void json_read_deinit(struct json_read *r)
{
	free(r->window);
	buf_deinit(&r->text);
	*r = (struct json_read){ 0 };
}

/* Returns the next byte without consuming it; -1: end of file or read error. */
static int json_peek(struct json_read *r)
{
	ssize_t n;

	if (likely(r->at < r->len))
		return (unsigned char)r->window[r->at];
	if (r->failed)
		return -1;
	n = r->read(r->userdata, r->window, JSON_READ_WINDOW);
	if (n <= 0) {
		r->failed = n < 0 ? (int)n : -ENODATA;
		return -1;
	}
	r->before += r->len;
	r->len = (size_t)n;
	r->at = 0;
	return (unsigned char)r->window[0];
}

static int json_take(struct json_read *r)
{
	int c = json_peek(r);

	if (c >= 0)
		r->at++;
	return c;
}

static int json_bad(struct json_read *r, struct error *err, const char *what)
{
	if (r->failed == -ENODATA)
		return error_set(err, -ENODATA, "it ends in the middle, at byte %llu",
				 (unsigned long long)json_read_offset(r));
	if (r->failed)
		return error_errno(err, r->failed, "can't read it");
	return error_set(err, -EBADMSG, "at byte %llu: %s", (unsigned long long)json_read_offset(r),
			 what);
}

static int json_keep(struct json_read *r, char c, struct error *err)
{
	if (!r->keep)
		return 0;
	if (unlikely(r->text.len >= r->text_max))
		return error_set(err, -EFBIG, "at byte %llu: a string longer than %zu bytes",
				 (unsigned long long)json_read_offset(r), r->text_max);
	buf_putc(&r->text, c);
	return 0;
}

static int json_hex4(struct json_read *r)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		int c = json_take(r), digit;

		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			digit = (c | 32) - 'a' + 10;
		else
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

static int json_keep_utf8(struct json_read *r, uint32_t c, struct error *err)
{
	char out[4];
	int n = 0;

	if (c < 0x80) {
		out[n++] = (char)c;
	} else if (c < 0x800) {
		out[n++] = (char)(0xc0 | c >> 6);
		out[n++] = (char)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		out[n++] = (char)(0xe0 | c >> 12);
		out[n++] = (char)(0x80 | (c >> 6 & 63));
		out[n++] = (char)(0x80 | (c & 63));
	} else {
		out[n++] = (char)(0xf0 | c >> 18);
		out[n++] = (char)(0x80 | (c >> 12 & 63));
		out[n++] = (char)(0x80 | (c >> 6 & 63));
		out[n++] = (char)(0x80 | (c & 63));
	}
	for (int i = 0; i < n; i++) {
		int e = json_keep(r, out[i], err);

		if (e < 0)
			return e;
	}
	return 0;
}

#define REPLACEMENT 0xfffd

static bool is_high_surrogate(int c)
{
	return c >= 0xd800 && c < 0xdc00;
}

static bool is_low_surrogate(int c)
{
	return c >= 0xdc00 && c < 0xe000;
}

/* Decodes what follows "\u": one character or a surrogate pair. A lone surrogate becomes U+FFFD. */
static int json_keep_unicode(struct json_read *r, struct error *err)
{
	int c = json_hex4(r), e;

	while (is_high_surrogate(c)) {
		int low;

		if (json_peek(r) != '\\')
			return json_keep_utf8(r, REPLACEMENT, err);
		r->at++;
		if (json_peek(r) != 'u') {
			/* Decodes an escape whose backslash was consumed. */
			e = json_keep_utf8(r, REPLACEMENT, err);
			return e < 0 ? e : 1;
		}
		r->at++;
		low = json_hex4(r);
		if (low < 0)
			return json_bad(r, err, "\\u needs four hexadecimal digits");
		if (is_low_surrogate(low))
			return json_keep_utf8(r,
					      0x10000 + ((uint32_t)(c - 0xd800) << 10) +
						      (uint32_t)(low - 0xdc00),
					      err);
		e = json_keep_utf8(r, REPLACEMENT, err);
		if (e < 0)
			return e;
		c = low;
	}
	if (c < 0)
		return json_bad(r, err, "\\u needs four hexadecimal digits");
	return json_keep_utf8(r, is_low_surrogate(c) ? REPLACEMENT : (uint32_t)c, err);
}

static int json_read_escape(struct json_read *r, struct error *err)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *p;
	int c, e;

	do {
		c = json_take(r);
		if (c == 'u') {
			e = json_keep_unicode(r, err);
			if (e <= 0)
				return e;
			continue;
		}
		p = c > 0 ? strchr(from, c) : NULL;
		return p ? json_keep(r, to[p - from], err)
			 : json_bad(r, err, "an unknown escape in a string");
	} while (true);
}

static int json_read_string(struct json_read *r, struct error *err)
{
	buf_clear(&r->text);
	for (;;) {
		int c = json_take(r), e;

		if (c == '"')
			break;
		if (c < 0)
			return json_bad(r, err, "unterminated string");
		e = c == '\\' ? json_read_escape(r, err) : json_keep(r, (char)c, err);
		if (unlikely(e < 0))
			return e;
	}
	return buf_error(&r->text) < 0 ? error_errno(err, -ENOMEM, "can't read a string") : 0;
}

static bool json_is_digit(int c)
{
	return c >= '0' && c <= '9';
}

/* Consumes digits. False: there is none. */
static bool json_take_digits(struct json_read *r)
{
	if (!json_is_digit(json_peek(r)))
		return false;
	while (json_is_digit(json_peek(r)) && r->text.len < 400)
		buf_putc(&r->text, (char)json_take(r));
	return !json_is_digit(json_peek(r));
}

static int json_read_number(struct json_read *r, struct error *err)
{
	int zero;

	buf_clear(&r->text);
	if (json_peek(r) == '-')
		buf_putc(&r->text, (char)json_take(r));
	zero = json_peek(r) == '0';
	if (!json_take_digits(r) ||
	    (zero && r->text.len > (size_t)(r->text.data[0] == '-' ? 2 : 1)))
		return json_bad(r, err, "not a JSON number");
	if (json_peek(r) == '.') {
		buf_putc(&r->text, (char)json_take(r));
		if (!json_take_digits(r))
			return json_bad(r, err, "not a JSON number");
	}
	if (json_peek(r) == 'e' || json_peek(r) == 'E') {
		buf_putc(&r->text, (char)json_take(r));
		if (json_peek(r) == '+' || json_peek(r) == '-')
			buf_putc(&r->text, (char)json_take(r));
		if (!json_take_digits(r))
			return json_bad(r, err, "not a JSON number");
	}
	return buf_error(&r->text) < 0 ? error_errno(err, -ENOMEM, "can't read a number")
				       : JSON_NUMBER;
}

static int json_read_word(struct json_read *r, const char *word, int token, struct error *err)
{
	for (const char *p = word; *p; p++)
		if (json_take(r) != *p)
			return json_bad(r, err, "neither a value nor true, false or null");
	return token;
}

static int json_skip_space(struct json_read *r)
{
	int c;

	while ((c = json_peek(r)) == ' ' || c == '\n' || c == '\r' || c == '\t')
		r->at++;
	return c;
}

static int json_open_level(struct json_read *r, int token, struct error *err)
{
	if (r->depth == JSON_READ_DEPTH_MAX)
		return error_set(err, -EFBIG, "at byte %llu: nested deeper than %d",
				 (unsigned long long)json_read_offset(r), JSON_READ_DEPTH_MAX);
	r->at++;
	r->open[r->depth++] = (char)token;
	r->state = JSON_WANT_FIRST;
	return token;
}

static int json_read_any(struct json_read *r, int c, struct error *err)
{
	int e;

	if (c == '{' || c == '[')
		return json_open_level(r, c, err);
	r->state = JSON_WANT_NEXT;
	switch (c) {
	case '"':
		r->at++;
		e = json_read_string(r, err);
		return e < 0 ? e : JSON_STRING;
	case 't':
		return json_read_word(r, "true", JSON_TRUE, err);
	case 'f':
		return json_read_word(r, "false", JSON_FALSE, err);
	case 'n':
		return json_read_word(r, "null", JSON_NULL, err);
	case 'N':
	case 'I':
		return json_bad(r, err, "JSON has no NaN and no Infinity");
	default:
		if (c == '-' || json_is_digit(c))
			return json_read_number(r, err);
		return json_bad(r, err, "not the beginning of a JSON value");
	}
}

static int json_read_key(struct json_read *r, int c, struct error *err)
{
	int e;

	if (c != '"')
		return json_bad(r, err, "expected a member name in quotes");
	r->at++;
	e = json_read_string(r, err);
	if (e < 0)
		return e;
	if (json_skip_space(r) != ':')
		return json_bad(r, err, "expected a colon");
	r->at++;
	r->state = JSON_WANT_VALUE;
	return JSON_KEY;
}

static bool json_skip_bom(struct json_read *r)
{
	for (const char *p = JSON_BOM; *p; p++)
		if (json_take(r) != (unsigned char)*p)
			return false;
	return true;
}

int json_read_next(struct json_read *r, struct error *err)
{
	int c = json_peek(r), top = r->depth ? r->open[r->depth - 1] : 0;

	if (c == (unsigned char)*JSON_BOM && !json_read_offset(r) && !json_skip_bom(r))
		return json_bad(r, err, "not UTF-8");
	c = json_skip_space(r);

	if (!r->depth && r->state == JSON_WANT_NEXT) {
		if (c < 0 && r->failed == -ENODATA)
			return JSON_END;
		return json_bad(r, err, "unexpected data after the end");
	}
	if (r->depth && r->state != JSON_WANT_VALUE) {
		if (c == (top == '{' ? '}' : ']')) {
			r->at++;
			r->depth--;
			r->state = JSON_WANT_NEXT;
			return c;
		}
		if (r->state == JSON_WANT_NEXT) {
			if (c != ',')
				return json_bad(r, err, "expected a comma or a closing bracket");
			r->at++;
			c = json_skip_space(r);
		}
		if (top == '{')
			return json_read_key(r, c, err);
	}
	return json_read_any(r, c, err);
}

int json_read_skip(struct json_read *r, int token, struct error *err)
{
	unsigned depth = r->depth;
	int t = token;

	if (token != JSON_OBJECT && token != JSON_ARRAY)
		return 0;
	r->keep = false;
	while (t >= 0 && r->depth >= depth)
		t = json_read_next(r, err);
	r->keep = true;
	return t < 0 ? t : 0;
}
