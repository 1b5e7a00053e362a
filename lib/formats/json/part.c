/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/part.h"

#include <string.h>

#include "formats/html/html.h"
#include "formats/json/mend.h"
#include "formats/json/writer.h"

/* Longer than a line of a record that fills a sub-buffer. */
#define LINE_MAX_BYTES (16U << 20)

void json_part_deinit(struct json_part *p)
{
	buf_deinit(&p->reader.ahead);
}

/* Returns the bytes that were read ahead. */
static const char *part_data(const struct json_part *p)
{
	return p->reader.ahead.data + p->reader.used;
}

static size_t part_available(const struct json_part *p)
{
	return p->reader.ahead.len - p->reader.used;
}

static int part_skip(struct json_part *p, const char *text)
{
	size_t len = strlen(text);
	int r = part_reader_need(&p->reader, len);

	if (r < 0)
		return r;
	if (part_available(p) < len || memcmp(part_data(p), text, len) != 0)
		return -EBADMSG;
	p->reader.used += len;
	return 0;
}

/* Bytes of the line with its end; 0: that is not here yet. In the JSON, only ends are "\n". */
static size_t part_line_length(const struct json_part *p)
{
	const char *data = part_data(p), *end = data + part_available(p);

	if (p->page) {
		const char *newline = memchr(data, '\n', (size_t)(end - data));

		return newline ? (size_t)(newline - data) + 1 : 0;
	}
	for (const char *at = data; (at = memchr(at, '\\', (size_t)(end - at))); at += 2) {
		if (end - at < 2)
			return 0;
		if (at[1] == 'n')
			return (size_t)(at - data) + 2;
	}
	return 0;
}

/* Makes a whole line available. Returns its length; 0 at the text's end; or -errno. */
static ssize_t part_find_line(struct json_part *p)
{
	size_t len;

	for (size_t need = 4096; need <= LINE_MAX_BYTES; need *= 4) {
		int r = part_reader_need(&p->reader, need);

		if (r < 0)
			return r;
		if (!part_available(p))
			return -EBADMSG;
		if (*part_data(p) == (p->page ? ' ' : '"'))
			return 0;
		len = part_line_length(p);
		if (len)
			return (ssize_t)len;
		if (part_available(p) < need)
			break;
	}
	return -EBADMSG;
}

int json_part_begin(struct json_part *p, struct output *to)
{
	int r = part_skip(p, p->page ? HTML_TEXT_BEGIN : JSON_TEXT_HEAD);
	ssize_t len;

	/* A line that tells of a loss has a time, too. */
	while (r == 0 && (len = part_find_line(p)) != 0) {
		if (len < 0 || *part_data(p) != '#')
			return (int)MIN(len, 0);
		if (to)
			buf_append(&to->buf, part_data(p), (size_t)len);
		p->reader.used += (size_t)len;
	}
	return r;
}

static bool part_read_time(const char *digits, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < HOST_TIME_LEN; i++) {
		char c = digits[i];

		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
			return false;
		*ret = *ret << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return true;
}

int json_part_next_line(struct json_part *p)
{
	ssize_t len = part_find_line(p);
	uint64_t ts;

	p->len = 0;
	if (len <= 0)
		return (int)len;
	if (len <= HOST_TIME_LEN || !part_read_time(part_data(p), &ts))
		return -EBADMSG;
	p->line = part_data(p) + HOST_TIME_LEN;
	p->len = (size_t)len - HOST_TIME_LEN;
	p->ts = MAX(p->ts, ts);
	p->reader.used += (size_t)len;
	return 0;
}

int json_part_begin_members(struct json_part *p)
{
	return part_skip(p, p->page ? HTML_BLOCK_END HTML_MORE_BEGIN : "\"");
}

int json_part_next_key(struct json_part *p)
{
	const char *data, *end;
	size_t len;
	int r = part_reader_need(&p->reader, sizeof(p->key) + 8);

	*p->key = '\0';
	if (r < 0)
		return r;
	if (part_available(p) && *part_data(p) == '}')
		return 0;
	r = part_skip(p, ",\n\"");
	if (r < 0)
		return r;
	data = part_data(p);
	end = memchr(data, '"', MIN(part_available(p), sizeof(p->key)));
	len = end ? (size_t)(end - data) : 0;
	if (!len)
		return -EBADMSG;
	memcpy(p->key, data, len);
	p->key[len] = '\0';
	p->reader.used += len;
	return part_skip(p, "\":");
}

/* The place in a value. */
struct value_scan {
	unsigned depth;
	bool in_string, escaped;
};

/* Returns how many of the bytes belong to the value; *done: it ends with them. */
static size_t value_scan(struct value_scan *s, const char *data, size_t len, bool *done)
{
	size_t i = 0;

	while (i < len && !*done) {
		char c = data[i++];

		if (s->escaped)
			s->escaped = false;
		else if (s->in_string && c == '\\')
			s->escaped = true;
		else if (c == '"')
			s->in_string = !s->in_string;
		else if (!s->in_string && (c == '{' || c == '['))
			s->depth++;
		else if (!s->in_string && (c == '}' || c == ']'))
			s->depth--;
		*done = !s->depth && !s->in_string;
	}
	return i;
}

int json_part_value(struct json_part *p, struct output *to)
{
	struct value_scan scan = { 0 };
	bool first = true, done = false;
	int r = 0;

	while (r == 0 && !done) {
		size_t len;
		const char *data;

		r = part_reader_need(&p->reader, 1);
		if (r < 0)
			return r;
		data = part_data(p);
		if (!part_available(p) || (first && !memchr("[{\"", *data, 3)))
			return -EBADMSG;
		len = value_scan(&scan, data, part_available(p), &done);
		p->reader.used += len;
		if (!to)
			continue;
		/* Without the outer brackets. */
		buf_append(&to->buf, data + first, len - first - done);
		first = false;
		r = output_settle(to);
	}
	return r;
}
