/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pull parser for JSON in bounded memory: skipped values are not stored. Numbers keep their
 * spelling, so nothing is rounded. Strings are returned as bytes: escapes as UTF-8, everything else
 * unchanged.
 */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

enum json_token {
	JSON_END = 0, /* after the single value of the file */
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
/* UTF-8 byte order mark, skipped at the start. */
#define JSON_BOM "\xef\xbb\xbf"

struct json_read {
	/* Fills data. Returns a byte count, 0 at the end, or -errno. */
	ssize_t (*read)(void *userdata, void *data, size_t len);
	void *userdata;
	size_t text_max; /* largest string in bytes; longer: -EFBIG */
	/* The last key, string or number. */
	struct buf text;

	char *window; /* owned */
	size_t at, len;
	uint64_t before; /* file offset of the window */
	int failed;	 /* error of read() */
	unsigned depth;
	bool keep; /* the caller wants the text */
	enum { JSON_WANT_VALUE, JSON_WANT_FIRST, JSON_WANT_NEXT } state;
	char open[JSON_READ_DEPTH_MAX]; /* '{' or '[' of each open level */
};

int json_read_init(struct json_read *r, ssize_t (*read)(void *, void *, size_t), void *userdata,
		   size_t text_max);
void json_read_deinit(struct json_read *r);

/*
 * Returns an enum json_token. -ENODATA: the file is truncated; -EBADMSG: invalid JSON, with its
 * position; -EFBIG: above a limit; or read()'s error.
 */
int json_read_next(struct json_read *r, struct error *err);
/* Skips the rest of the value that `token` began. Returns 0 or as json_read_next(). */
int json_read_skip(struct json_read *r, int token, struct error *err);
static inline uint64_t json_read_offset(const struct json_read *r)
{
	return r->before + r->at;
}
