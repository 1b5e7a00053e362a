/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes a small JSON document, for people's scripts. Bytes that are not UTF-8 become U+FFFD. */
#pragma once

#include "util/buf.h"

struct json {
	struct buf *out; /* borrowed; keeps a lack of memory */
	unsigned depth;
	bool empty; /* nothing yet in the object or array that is open */
};
#define JSON_INIT(buf) ((struct json){ .out = (buf), .empty = true })

/* key NULL: within an array, or the document itself. open: '{' or '['. */
void json_open(struct json *j, const char *key, char open);
void json_close(struct json *j, char close);
void json_string(struct json *j, const char *key, const char *value);
void json_uint(struct json *j, const char *key, uint64_t value);
void json_bool(struct json *j, const char *key, bool value);
/* Ends the document and prints it. 0 or -errno. */
int json_print(struct json *j);
