/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/merge_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longest string in bytes: a row's name, a note. */
#define TEXT_MAX 4096

static ssize_t merge_file_read(void *userdata, void *data, size_t len)
{
	struct merge_file *f = userdata;
	ssize_t n;

	do
		n = read(f->fd, data, (size_t)MIN(f->left, (uint64_t)len));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	f->left -= (uint64_t)n;
	f->m->bytes += (uint64_t)n;
	return f->m->bytes > f->m->bytes_max ? -EFBIG : n;
}

int merge_file_init(struct merge_file *f, struct report_merge *m, int fd, const char *name)
{
	*f = (struct merge_file){
		.m = m, .fd = fd, .name = name, .left = UINT64_MAX, .refused = ERROR_INIT
	};
	return json_read_init(&f->json, merge_file_read, f, TEXT_MAX);
}

void merge_file_deinit(struct merge_file *f)
{
	json_read_deinit(&f->json);
	buf_deinit(&f->left_out);
	error_deinit(&f->refused);
}

int merge_bad(const struct merge_file *f, const char *what, struct error *err)
{
	return error_set(err, -EBADMSG, "at byte %" PRIu64 ": %s", json_read_offset(&f->json),
			 what);
}

int merge_expect(struct merge_file *f, int token, const char *what, struct error *err)
{
	int r = json_read_next(&f->json, err);

	return r < 0 ? r : r == token ? 0 : merge_bad(f, what, err);
}

int merge_next_key(struct merge_file *f, struct error *err)
{
	int r = json_read_next(&f->json, err);

	return r < 0 ? r : r == JSON_KEY;
}

bool merge_key_is(const struct merge_file *f, const char *key)
{
	const struct buf *text = &f->json.text;

	return text->len == strlen(key) && !memcmp(text->data, key, text->len);
}

int merge_skip(struct merge_file *f, struct error *err)
{
	int token = json_read_next(&f->json, err);

	return token < 0 ? token : json_read_skip(&f->json, token, err);
}

int merge_take_u64(struct merge_file *f, uint64_t *ret, struct error *err)
{
	const char *text = buf_string(&f->json.text);
	char *end;

	if (!text)
		return error_errno(err, -ENOMEM, "can't read a number");
	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (*text == '-' || *end || errno || *ret == UINT64_MAX)
		return merge_bad(f, "not a whole number of 64 bits", err);
	return 0;
}

int merge_read_u64(struct merge_file *f, uint64_t *ret, struct error *err)
{
	int r = merge_expect(f, JSON_NUMBER, "expected a number", err);

	return r < 0 ? r : merge_take_u64(f, ret, err);
}

int merge_read_i64(struct merge_file *f, int64_t *ret, struct error *err)
{
	int r = merge_expect(f, JSON_NUMBER, "expected a number", err);
	const char *text;
	char *end;

	if (r < 0)
		return r;
	text = buf_string(&f->json.text);
	if (!text)
		return error_errno(err, -ENOMEM, "can't read a number");
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return *end || errno ? merge_bad(f, "not a whole number of 64 bits", err) : 0;
}
