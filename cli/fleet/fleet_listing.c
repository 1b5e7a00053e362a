/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet_listing.h"

#include <errno.h>
#include <inttypes.h>
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

/* In lines: a kind, then the text; of a name, its size and a space before it. */
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
		free(l->items[i].name);
	free(l->items);
	buf_deinit(&l->next);
	*l = (struct listing){ 0 };
}

static uint64_t size_parse(const char *text, size_t len)
{
	uint64_t size = 0;

	for (size_t i = 0; i < len; i++)
		if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(size, 10, &size) ||
		    __builtin_add_overflow(size, (uint64_t)(text[i] - '0'), &size))
			return UINT64_MAX;
	return len ? size : UINT64_MAX;
}

/* A text without a newline and a NUL; the other process checks its characters. */
static void reading_put(struct reading *r, const char *text, size_t len)
{
	if (!text || memchr(text, '\n', len) || memchr(text, '\0', len))
		len = 0;
	buf_append(r->lines, text ?: "", MIN(len, (size_t)TEXT_LEN_MAX + 1));
	buf_putc(r->lines, '\n');
}

static void reading_put_name(struct reading *r, uint64_t size, const char *text, size_t len)
{
	buf_printf(r->lines, "%c%" PRIu64 " ", LINE_NAME, size);
	reading_put(r, text, len);
}

static ssize_t reading_give(void *userdata, void *data, size_t len)
{
	struct reading *r = userdata;
	size_t n = MIN(len, r->answer->len - r->at);

	memcpy(data, r->answer->data + r->at, n);
	r->at += n;
	return (ssize_t)n;
}

static bool reading_is_key(const struct json_read *json, const char *key)
{
	return json->text.len == strlen(key) && !memcmp(json->text.data, key, json->text.len);
}

static int reading_take_object(struct reading *r, struct json_read *json, struct error *err)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	uint64_t size = UINT64_MAX;
	bool is_named = false;
	int token;

	while ((token = json_read_next(json, err)) == JSON_KEY) {
		bool is_name = reading_is_key(json, "name"), is_size = reading_is_key(json, "size");

		token = json_read_next(json, err);
		if (token == JSON_STRING && is_name) {
			is_named = true;
			buf_clear(&name);
			buf_append(&name, json->text.data ?: "", json->text.len);
		} else if (token == JSON_NUMBER && is_size) {
			size = size_parse(json->text.data, json->text.len);
		} else if (token >= 0) {
			token = json_read_skip(json, token, err);
		}
		if (token < 0)
			return token;
	}
	if (buf_error(&name) < 0)
		return error_errno(err, -ENOMEM, "can't read it");
	if (is_named)
		reading_put_name(r, size, name.data, name.len);
	return token;
}

/* [{"name": "board=door-17", "size": 7, ...}, ...] */
static int reading_take_index(struct reading *r, struct json_read *json, struct error *err)
{
	int token = json_read_next(json, err);

	if (token >= 0 && token != JSON_ARRAY)
		return error_set(err, -EBADMSG, "it is no array");
	while (token >= 0 && (token = json_read_next(json, err)) == JSON_OBJECT)
		token = reading_take_object(r, json, err);
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

/* memmem() in sanitizers reads all that is left, for each tag. */
static const char *tag_find(const char *at, const char *stop, const char *tag)
{
	size_t len = strlen(tag);

	while ((at = memchr(at, '<', (size_t)(stop - at)))) {
		if ((size_t)(stop - at) >= len && !memcmp(at, tag, len))
			return at;
		at++;
	}
	return NULL;
}

/* The text of the next element of that name, behind which *at is moved. NULL: there is none. */
static const char *element_next(const char **at, const char *stop, const char *begin,
				const char *end, size_t *ret_len)
{
	const char *text = tag_find(*at, stop, begin), *to;

	if (!text)
		return NULL;
	text += strlen(begin);
	to = tag_find(text, stop, end);
	if (!to)
		return NULL;
	*ret_len = (size_t)(to - text);
	*at = to;
	return text;
}

/* A size comes behind its key. Keys that we take need no entities. */
static void reading_take_keys(struct reading *r)
{
	const char *at = r->answer->data, *stop = at + r->answer->len, *key, *text;
	size_t key_len, len;

	while ((key = element_next(&at, stop, "<Key>", "</Key>", &key_len))) {
		const char *next = tag_find(at, stop, "<Key>") ?: stop, *from = at;

		text = element_next(&from, next, "<Size>", "</Size>", &len);
		reading_put_name(r, text ? size_parse(text, len) : UINT64_MAX, key, key_len);
	}
}

static void reading_take_tokens(struct reading *r)
{
	const char *at = r->answer->data, *stop = at + r->answer->len, *token;
	size_t len;

	while ((token = element_next(&at, stop, "<NextContinuationToken>",
				     "</NextContinuationToken>", &len))) {
		buf_putc(r->lines, LINE_TOKEN);
		reading_put(r, token, len);
	}
}

static int reading_take_xml(struct reading *r, struct error *err)
{
	static const char root[] = "<ListBucketResult";

	if (!tag_find(r->answer->data, r->answer->data + r->answer->len, root))
		return error_set(err, -EBADMSG, "it has no %s>", root);
	reading_take_keys(r);
	reading_take_tokens(r);
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
	const char *space = strchr(text, ' ');
	struct listing_item item;

	if (!space || !listing_is_name(space + 1)) {
		l->refused++;
		return 0;
	}
	if (l->count == LISTING_NAMES_MAX)
		return error_set(err, -EFBIG, "it has more than %u names", LISTING_NAMES_MAX);
	item.size = size_parse(text, (size_t)(space - text));
	item.name = strdup(space + 1);
	if (!item.name || vec_push(l->items, l->count, l->cap, item) < 0) {
		free(item.name);
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

	l->bytes += answer->len;
	if (l->bytes > LISTING_ALL_MAX)
		return error_set(err, -EFBIG, "the store's list: it does not end");
	if (r >= 0) {
		r = confined_run(listing_work, &work, &unused, err);
		if (r < 0)
			return error_prefix(err, "the store's list");
		r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
	}
	if (r == 0)
		r = read_to_end(fd, 3 * LISTING_MAX, &lines);
	if (r < 0)
		return error_errno(err, r, "the store's list");
	r = listing_take_lines(l, &lines, err);
	return r < 0 ? error_prefix(err, "the store's list") : 0;
}
