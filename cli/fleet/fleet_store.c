/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet_store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/vec.h"
#include "curl.h"
#include "fleet/word.h"
#include "input.h"

#define PARTS_MAX 10000U
#define LISTS "nginx needs autoindex on; autoindex_format json; S3 needs --s3"
#define UNRESERVED "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-~"
/* A board's list: of about 6,000 segments, by nginx. */
#define INDEX_MAX (1U << 20)
#define INDEX_NAME_SIZE 40
/* Lists of boards that are on the disk together. */
#define INDEXES_AT_ONCE ((size_t)1000)

int fleet_store_init(struct fleet_store *ret, const struct options *o, const char *order,
		     struct error *err)
{
	struct fleet_store s = { .o = o, .url = o->url };
	char *end;

	if ((!o->url && !o->broker) || !o->fleet) {
		error_set(err, -EINVAL, "fleet: --%s is missing", o->fleet ? "url" : "fleet");
		return error_hint(err, "as in the boards' agent.conf: --fleet NAME, and --url URL; "
				       "status: or --broker URL");
	}
	errno = 0;
	s.order = order ? strtoull(order, &end, 10) : 0;
	if (order && (*order < '1' || *order > '9' || errno || *end))
		return error_set(err, -EINVAL, "'%s' is no serial of an order", order);
	if (!word_is_name(o->fleet))
		return error_set(err, -EINVAL, "'%s' is no name of a fleet", o->fleet);
	/* It goes into curl's configuration in quotes. */
	if (o->url && strpbrk(o->url, "\"\\\r\n\t ?#"))
		return error_set(err, -EINVAL, "--url: '%s' is no URL of a folder", o->url);
	s.url_len = (int)strlen(o->url ?: "");
	while (s.url_len && o->url[s.url_len - 1] == '/')
		s.url_len--;
	result_folder_put(o->fleet, s.order, NULL, &s.place);
	*ret = s;
	return buf_string(&ret->place) ? 0 : error_errno(err, -ENOMEM, "fleet");
}

void fleet_store_deinit(struct fleet_store *s)
{
	buf_deinit(&s->place);
}

/* Keeps a name of this order's results. */
static int store_take(struct fleet_store *s, const char *place, const struct listing_item *item,
		      struct listing *ret, struct error *err)
{
	_cleanup_buf_ struct buf path = BUF_INIT;
	struct listing_item kept = { .size = item->size };
	struct result_name parsed;

	buf_printf(&path, "%s%s%s", place, *place ? "/" : "", item->name);
	if (!buf_string(&path))
		return error_errno(err, -ENOMEM, "the store's list");
	if (!result_name_parse(path.data, &parsed) || parsed.order != s->order ||
	    strcmp(parsed.fleet, s->o->fleet) != 0) {
		s->refused++;
		return 0;
	}
	if (ret->count == LISTING_NAMES_MAX)
		return error_set(err, -EFBIG, "the store has more than %u results",
				 LISTING_NAMES_MAX);
	buf_clear(&path);
	result_folder_put(parsed.fleet, parsed.order, parsed.board, &path);
	buf_printf(&path, "/%s", parsed.file);
	kept.name = buf_string(&path);
	if (!kept.name || vec_push(ret->items, ret->count, ret->cap, kept) < 0)
		return error_errno(err, -ENOMEM, "the store's list");
	path = BUF_INIT;
	return 0;
}

/* As RFC 3986 has unreserved characters: a signature of S3 is of URLs that are written so. */
static void store_put_encoded(struct buf *url, const char *text, size_t len, const char *also)
{
	for (size_t i = 0; i < len; i++) {
		char c[2] = { text[i] };

		if (strspn(c, UNRESERVED) || strspn(c, also))
			buf_putc(url, c[0]);
		else
			buf_printf(url, "%%%02X", (unsigned char)c[0]);
	}
}

void fleet_store_put_url(const struct fleet_store *s, const char *name, struct buf *url)
{
	buf_printf(url, "%.*s/", s->url_len, s->url);
	store_put_encoded(url, name, strlen(name), s->o->s3 ? "/" : "/=");
}

/* Path style: https://HOST/BUCKET/PREFIX. The parameters are sorted, as in a signature. */
static int store_page_url(const struct fleet_store *s, const struct buf *token, struct buf *url,
			  struct error *err)
{
	const char *host = s->url + strlen("https://"), *end = s->url + s->url_len;
	const char *path = s->url_len > 8 ? memchr(host, '/', (size_t)(end - host)) : NULL;
	const char *prefix = path ? memchr(path + 1, '/', (size_t)(end - path - 1)) : NULL;
	_cleanup_buf_ struct buf keys = BUF_INIT;

	if (!path)
		return error_set(err, -EINVAL, "--url: S3 needs https://HOST/BUCKET");
	prefix = prefix ?: end;
	if (prefix < end)
		buf_printf(&keys, "%.*s/", (int)(end - prefix - 1), prefix + 1);
	buf_printf(&keys, "%s/", s->place.data);
	buf_printf(url, "%.*s?", (int)(prefix - s->url), s->url);
	if (token->len) {
		buf_puts(url, "continuation-token=");
		store_put_encoded(url, token->data, token->len, "");
		buf_putc(url, '&');
	}
	buf_puts(url, "list-type=2&prefix=");
	store_put_encoded(url, keys.data ?: "", keys.len, "");
	return buf_error(&keys) < 0 || !buf_string(url) ? error_errno(err, -ENOMEM, "the URL") : 0;
}

/* A part of the keys, by the token of the part before it. */
static int store_get_part(const struct fleet_store *s, struct listing *keys, struct error *err)
{
	_cleanup_buf_ struct buf url = BUF_INIT, answer = BUF_INIT, token = BUF_INIT;
	int r;

	buf_append(&token, keys->next.data ?: "", keys->next.len);
	r = store_page_url(s, &token, &url, err);
	if (r == 0)
		r = curl_get(s->o->curl, url.data, LISTING_MAX, &answer, err);
	if (r == 0)
		r = listing_add(keys, true, &answer, err);
	if (r == 0 && token.len && token.len == keys->next.len &&
	    !memcmp(token.data, keys->next.data, token.len))
		r = error_set(err, -EBADMSG, "the store's list: it gives the same part again");
	return r;
}

/* All keys of the order. */
static int store_get_keys(struct fleet_store *s, struct listing *keys, struct error *err)
{
	unsigned parts = 0;
	int r;

	do {
		r = store_get_part(s, keys, err);
		if (r == 0 && keys->next.len && ++parts == PARTS_MAX)
			r = error_set(err, -EFBIG, "the store's list: it has more than %u parts",
				      PARTS_MAX);
	} while (r == 0 && keys->next.len);
	s->refused += keys->refused;
	return r;
}

static int store_list_s3(struct fleet_store *s, struct listing *ret, struct error *err)
{
	_cleanup_listing_ struct listing keys = { 0 };
	int r = store_get_keys(s, &keys, err);

	for (size_t i = 0; i < keys.count && r == 0; i++)
		r = store_take(s, "", &keys.items[i], ret, err);
	return r;
}

/* "board=B": a folder that may be one of the order. */
static bool store_is_board(const char *name)
{
	return !strncmp(name, "board=", 6) && word_is_name(name + 6);
}

/* The file of a board's list, until it is read. It needs no folder for each board. */
static void store_index_name(size_t i, char ret[INDEX_NAME_SIZE])
{
	snprintf(ret, INDEX_NAME_SIZE, "index-%zu.part", i);
}

static int store_get_indexes(const struct fleet_store *s, int folder,
			     const struct listing_item *boards, size_t count, struct error *err)
{
	_cleanup_close_ int fd = input_create_temp();
	_cleanup_buf_ struct buf list = BUF_INIT;
	char name[INDEX_NAME_SIZE];
	int r = fd;

	for (size_t i = 0; i < count; i++) {
		if (!store_is_board(boards[i].name))
			continue;
		store_index_name(i, name);
		/* One of a run that was killed. */
		unlinkat(folder, name, 0);
		buf_printf(&list, "url = \"%.*s/%s/%s/\"\noutput = \"%s\"\n", s->url_len, s->url,
			   s->place.data, boards[i].name, name);
	}
	if (r >= 0)
		r = buf_error(&list) ?: write_full(fd, list.data, list.len);
	if (r < 0)
		return error_errno(err, r, "the boards' lists");
	if (!list.len)
		return 0;
	r = curl_get_all(s->o->curl, fd, INDEX_MAX, folder, err);
	return r < 0 ? r : 0;
}

/* A board whose list does not come is refused, and said by curl. */
static int store_take_index(struct fleet_store *s, int folder, size_t i, const char *board,
			    struct listing *ret, struct error *err)
{
	_cleanup_buf_ struct buf place = BUF_INIT, answer = BUF_INIT;
	_cleanup_listing_ struct listing files = { 0 };
	_cleanup_error_ struct error why = ERROR_INIT;
	char name[INDEX_NAME_SIZE];
	int r;

	buf_printf(&place, "%s/%s", s->place.data, board);
	if (!buf_string(&place))
		return error_errno(err, -ENOMEM, "%s", board);
	store_index_name(i, name);
	r = read_file_at(folder, name, INDEX_MAX, &answer);
	unlinkat(folder, name, 0);
	if (r == 0)
		r = listing_add(&files, false, &answer, &why);
	if (r < 0) {
		cli_warn("refused: the list of %s%s%s", board, why.message ? ": " : "",
			 why.message ?: "");
		s->refused++;
		return 0;
	}
	s->refused += files.refused;
	for (size_t n = 0; n < files.count && r == 0; n++)
		r = store_take(s, place.data, &files.items[n], ret, err);
	return r;
}

static int store_take_indexes(struct fleet_store *s, int folder, const struct listing_item *boards,
			      size_t count, struct listing *ret, struct error *err)
{
	int r = store_get_indexes(s, folder, boards, count, err);

	for (size_t i = 0; i < count && r == 0; i++) {
		if (store_is_board(boards[i].name))
			r = store_take_index(s, folder, i, boards[i].name, ret, err);
		else
			s->refused++;
	}
	return r;
}

/* The folders of an order. */
static int store_get_index(struct fleet_store *s, struct listing *boards, struct error *err)
{
	_cleanup_buf_ struct buf url = BUF_INIT, answer = BUF_INIT;
	int r;

	buf_printf(&url, "%.*s/%s/", s->url_len, s->url, s->place.data);
	if (!buf_string(&url))
		return error_errno(err, -ENOMEM, "the URL");
	r = curl_get(s->o->curl, url.data, LISTING_MAX, &answer, err);
	if (r == -ENOENT)
		error_hint(err,
			   "no board has answered order %" PRIu64
			   ", or the store has no lists: " LISTS,
			   s->order);
	if (r == 0)
		r = listing_add(boards, false, &answer, err);
	if (r == -EBADMSG && !err->hint)
		error_hint(err, LISTS);
	s->refused += boards->refused;
	return r;
}

static int store_list_index(struct fleet_store *s, int folder, struct listing *ret,
			    struct error *err)
{
	_cleanup_listing_ struct listing boards = { 0 };
	int r = store_get_index(s, &boards, err);

	for (size_t i = 0; i < boards.count && r == 0; i += INDEXES_AT_ONCE)
		r = store_take_indexes(s, folder, &boards.items[i],
				       MIN(boards.count - i, INDEXES_AT_ONCE), ret, err);
	return r;
}

int fleet_store_list(struct fleet_store *s, int folder, struct listing *ret, struct error *err)
{
	return s->o->s3 ? store_list_s3(s, ret, err) : store_list_index(s, folder, ret, err);
}

/* Turns "board=B", or a whole name, into B; or removes it. */
static void store_keep_board(struct fleet_store *s, struct listing *names, size_t i, size_t *kept)
{
	char *name = names->items[i].name;
	struct result_name parsed;

	if (s->o->s3 ? result_name_parse(name, &parsed) && parsed.order == s->order
		     : store_is_board(name)) {
		const char *board = s->o->s3 ? parsed.board : name + strlen("board=");

		memmove(name, board, strlen(board) + 1);
		names->items[(*kept)++].name = name;
	} else {
		s->refused++;
		free(name);
	}
}

int fleet_store_boards(struct fleet_store *s, struct listing *ret, struct error *err)
{
	int r = s->o->s3 ? store_get_keys(s, ret, err) : store_get_index(s, ret, err);
	size_t kept = 0;

	for (size_t i = 0; i < ret->count; i++)
		store_keep_board(s, ret, i, &kept);
	ret->count = kept;
	return r;
}
