/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "far_json.h"

#include <unistd.h>

#include "base/json.h"
#include "marks/json_read.h"

/* Bytes of a string or a number. */
#define TEXT_MAX (1U << 20)
/* Bytes that one host adds. */
#define VALUE_MAX (64U << 20)

struct given {
	int fd;
	off_t at;
};

static ssize_t given_read(void *userdata, void *data, size_t len)
{
	struct given *given = userdata;
	ssize_t n = pread(given->fd, data, len, given->at);

	if (n < 0)
		return -errno;
	given->at += n;
	return n;
}

static void far_json_put_text(struct buf *out, const struct buf *text)
{
	buf_putc(out, '"');
	json_escape(out, text->data, text->len);
	buf_putc(out, '"');
}

static void far_json_put_token(struct buf *out, int token, const struct buf *text)
{
	if (token == JSON_STRING)
		far_json_put_text(out, text);
	else if (token == JSON_NUMBER)
		buf_append(out, text->data, text->len);
	else if (token == JSON_TRUE || token == JSON_FALSE)
		buf_puts(out, token == JSON_TRUE ? "true" : "false");
	else if (token == JSON_NULL)
		buf_puts(out, "null");
	else
		buf_putc(out, (char)token);
}

/* Writes each token anew, so that a string is UTF-8 and has no control character. */
static int far_json_copy(struct buf *out, struct json_read *json, struct error *err)
{
	bool is_value = true; /* of a key, or the whole */
	int token;

	while ((token = json_read_next(json, err)) > 0) {
		bool is_end = token == JSON_OBJECT_END || token == JSON_ARRAY_END;

		if (!is_value && !is_end)
			json_put_comma(out);
		is_value = token == JSON_KEY;
		if (is_value) {
			far_json_put_text(out, &json->text);
			buf_putc(out, ':');
		} else {
			far_json_put_token(out, token, &json->text);
		}
		if (out->failed)
			return error_errno(err, -ENOMEM, "JSON");
		if (out->len > VALUE_MAX)
			return error_set(err, -EFBIG, "it has more than %u MiB", VALUE_MAX >> 20);
	}
	return token;
}

void far_json_begin(struct buf *out)
{
	buf_puts(out, "{\"hosts\":[");
}

int far_json_put(struct buf *out, const char *label, int status, int fd, struct error *err)
{
	struct given given = { .fd = fd };
	_cleanup_buf_ struct buf value = BUF_INIT;
	struct json_read json;
	int r = json_read_init(&json, given_read, &given, TEXT_MAX);

	if (r < 0)
		return error_errno(err, r, "JSON");
	r = far_json_copy(&value, &json, err);
	json_read_deinit(&json);
	json_put_comma(out);
	buf_putc(out, '{');
	json_put_string_key(out, "label", label);
	json_put_i64_key(out, "status", status);
	json_put_key(out, "output");
	if (r < 0)
		buf_puts(out, "null");
	else
		buf_append(out, value.data, value.len);
	buf_putc(out, '}');
	return r;
}

void far_json_end(struct buf *out)
{
	buf_puts(out, "]}\n");
}
