/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet_listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/vec.h"
#include "confined.h"
#include "input.h"
#include "marks/json_read.h"

#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-=/"
/* Tokens of S3 may have more characters; none needs quotes. */
#define TOKEN_CHARS NAME_CHARS "+"
#define TEXT_LEN_MAX 1024

/* In lines: a kind, then the text. */
enum line_kind { LINE_NAME = 'n', LINE_TOKEN = 't' };

struct reading {
	const struct buf *answer;
	size_t at; /* what json_read has taken */
	struct buf *lines;
};

/* Another process does this for root. */
struct listing_work {
	const struct buf *answer;
	bool is_s3;
	int out;
};

void listing_deinit(struct listing *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->names[i]);
	free(l->names);
	buf_deinit(&l->next);
	*l = (struct listing){ 0 };
}

/* A text without a newline and a NUL; the other process checks its characters. */
static void reading_put(struct reading *r, enum line_kind kind, const char *text, size_t len)
{
	if (!text || memchr(text, '\n', len) || memchr(text, '\0', len))
		len = 0;
	buf_putc(r->lines, (char)kind);
	buf_append(r->lines, text ?: "", MIN(len, (size_t)TEXT_LEN_MAX + 1));
	buf_putc(r->lines, '\n');
}

static ssize_t reading_give(void *userdata, void *data, size_t len)
{
	struct reading *r = userdata;
	size_t n = MIN(len, r->answer->len - r->at);

	memcpy(data, r->answer->data + r->at, n);
	r->at += n;
	return (ssize_t)n;
}

/* [{"name": "board=door-17", ...}, ...] */
static int reading_take_index(struct reading *r, struct json_read *json, struct error *err)
{
	int token = json_read_next(json, err);

	if (token >= 0 && token != JSON_ARRAY)
		return error_set(err, -EBADMSG, "it is no array");
	while (token >= 0 && (token = json_read_next(json, err)) == JSON_OBJECT) {
		while ((token = json_read_next(json, err)) == JSON_KEY) {
			bool is_name = json->text.len == 4 && !memcmp(json->text.data, "name", 4);

			token = json_read_next(json, err);
			if (token == JSON_STRING && is_name)
				reading_put(r, LINE_NAME, json->text.data, json->text.len);
			else if (token >= 0)
				token = json_read_skip(json, token, err);
			if (token < 0)
				return token;
		}
	}
	return token < 0		 ? token
	       : token == JSON_ARRAY_END ? 0
					 : error_set(err, -EBADMSG, "it has no objects");
}

static int reading_take_json(struct reading *r, struct error *err)
{
	struct json_read json;
	int e = json_read_init(&json, reading_give, r, TEXT_LEN_MAX + 1);

	if (e < 0)
		return error_errno(err, e, "can't read it");
	e = reading_take_index(r, &json, err);
	json_read_deinit(&json);
	return e;
}

/* The text of each element of that name. Keys that we take need no entities. */
static void reading_take_elements(struct reading *r, const char *begin, const char *end,
				  enum line_kind kind)
{
	const char *at = r->answer->data, *stop = at + r->answer->len, *to;
	size_t begin_len = strlen(begin);

	while ((at = memmem(at, (size_t)(stop - at), begin, begin_len))) {
		at += begin_len;
		to = memmem(at, (size_t)(stop - at), end, strlen(end));
		if (!to)
			return;
		reading_put(r, kind, at, (size_t)(to - at));
		at = to;
	}
}

static int reading_take_xml(struct reading *r, struct error *err)
{
	static const char root[] = "<ListBucketResult";

	if (!memmem(r->answer->data, r->answer->len, root, sizeof(root) - 1))
		return error_set(err, -EBADMSG, "it has no %s>", root);
	reading_take_elements(r, "<Key>", "</Key>", LINE_NAME);
	reading_take_elements(r, "<NextContinuationToken>", "</NextContinuationToken>", LINE_TOKEN);
	return 0;
}

int listing_read(const struct buf *answer, bool is_s3, struct buf *lines, struct error *err)
{
	struct reading r = { .answer = answer, .lines = lines };
	int e;

	if (!answer->len)
		return error_set(err, -EBADMSG, "it is empty");
	e = is_s3 ? reading_take_xml(&r, err) : reading_take_json(&r, err);
	if (e == 0 && buf_error(lines) < 0)
		e = error_errno(err, -ENOMEM, "can't read it");
	return e;
}

static int listing_work(void *userdata, struct export_result *ret _unused_, struct error *err)
{
	const struct listing_work *w = userdata;
	_cleanup_buf_ struct buf lines = BUF_INIT;
	int r = listing_read(w->answer, w->is_s3, &lines, err);

	if (r < 0)
		return r;
	r = write_full(w->out, lines.data, lines.len);
	return r < 0 ? error_errno(err, r, "can't read it") : 0;
}

static bool listing_is_name(const char *text)
{
	size_t len = strlen(text);

	return len && len <= TEXT_LEN_MAX && text[0] != '/' && strspn(text, NAME_CHARS) == len &&
	       !strstr(text, "..");
}

/* The list would end early without an error if a token were left out. */
static int listing_take_token(struct listing *l, const char *text, struct error *err)
{
	size_t len = strlen(text);

	if (!len)
		return 0;
	if (l->next.len || len > TEXT_LEN_MAX || strspn(text, TOKEN_CHARS) != len)
		return error_set(err, -EBADMSG, "its token for the next part is none");
	buf_puts(&l->next, text);
	return buf_error(&l->next);
}

static int listing_take_name(struct listing *l, const char *text, struct error *err)
{
	char *name;

	if (!listing_is_name(text)) {
		l->refused++;
		return 0;
	}
	if (l->count == LISTING_NAMES_MAX)
		return error_set(err, -EFBIG, "it has more than %u names", LISTING_NAMES_MAX);
	name = strdup(text);
	if (!name || vec_push(l->names, l->count, l->cap, name) < 0) {
		free(name);
		return -ENOMEM;
	}
	return 0;
}

int listing_take_lines(struct listing *l, struct buf *lines, struct error *err)
{
	char *at = buf_string(lines), *line;
	int r = at ? 0 : -ENOMEM;

	buf_clear(&l->next);
	if (r == 0 && strlen(at) != lines->len)
		return error_set(err, -EBADMSG, "it has a NUL");
	while (r == 0 && (line = strsep(&at, "\n"))) {
		if (line[0] == LINE_NAME)
			r = listing_take_name(l, line + 1, err);
		else if (line[0] == LINE_TOKEN)
			r = listing_take_token(l, line + 1, err);
	}
	return r < 0 && !err->code ? error_errno(err, r, "can't read it") : r;
}

int listing_add(struct listing *l, bool is_s3, const struct buf *answer, struct error *err)
{
	_cleanup_close_ int fd = input_create_temp();
	_cleanup_export_result_ struct export_result unused = { 0 };
	_cleanup_buf_ struct buf lines = BUF_INIT;
	struct listing_work work = { .answer = answer, .is_s3 = is_s3, .out = fd };
	int r = fd;

	if (r >= 0) {
		r = confined_run(listing_work, &work, &unused, err);
		if (r < 0)
			return error_prefix(err, "the store's list");
		r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
	}
	if (r == 0)
		r = read_to_end(fd, 2 * LISTING_MAX, &lines);
	if (r < 0)
		return error_errno(err, r, "the store's list");
	r = listing_take_lines(l, &lines, err);
	return r < 0 ? error_prefix(err, "the store's list") : 0;
}
