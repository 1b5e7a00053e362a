/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads JSON a token at a time, in bounded memory: what is not wanted is
 * passed over without being held. Numbers stay as they are spelled, so that
 * nothing is rounded on the way. Strings come as bytes: what an escape says
 * is UTF-8, what stands there is what stands there.
 */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

enum json_token {
	JSON_END = 0, /* behind the one value that a file holds */
	JSON_OBJECT = '{',
	JSON_OBJECT_END = '}',
	JSON_ARRAY = '[',
	JSON_ARRAY_END = ']',
	JSON_KEY = 'k',
	JSON_STRING = 's',
	JSON_NUMBER = 'n',
	JSON_TRUE = 't',
	JSON_FALSE = 'f',
	JSON_NULL = '0',
};

#define JSON_READ_DEPTH_MAX 128
#define JSON_READ_WINDOW (64U << 10)
/* What some programs put before a text of UTF-8: passed over. */
#define JSON_BOM "\xef\xbb\xbf"

struct json_read {
	/* Fills data; 0 at the end, -errno. */
	ssize_t (*read)(void *userdata, void *data, size_t len);
	void *userdata;
	size_t text_max; /* bytes of a string; longer: -EFBIG */
	/* Of the last key, string or number. */
	struct buf text;

	char *window; /* owned */
	size_t at, len;
	uint64_t before; /* bytes of the file before the window */
	int failed;	 /* of read */
	unsigned depth;
	bool keep; /* text is wanted */
	enum { JSON_WANT_VALUE, JSON_WANT_FIRST, JSON_WANT_NEXT } state;
	char open[JSON_READ_DEPTH_MAX]; /* '{' or '[' of each level */
};

int json_read_init(struct json_read *r, ssize_t (*read)(void *, void *, size_t), void *userdata,
		   size_t text_max);
void json_read_deinit(struct json_read *r);

/*
 * An enum json_token; -ENODATA: the file ends before its value does; -EBADMSG: no
 * JSON, the message says where; -EFBIG: more than is taken; or what read said.
 */
int json_read_next(struct json_read *r, struct error *err);
/* Passes over the rest of the value that token began. 0 or as above. */
int json_read_skip(struct json_read *r, int token, struct error *err);
static inline uint64_t json_read_offset(const struct json_read *r)
{
	return r->before + r->at;
}
