/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes a small JSON document for scripts. Invalid UTF-8 becomes U+FFFD. */
#pragma once

#include "base/buf.h"

struct document {
	struct buf *out; /* borrowed; remembers a failed allocation */
	unsigned depth;
	bool empty; /* the open object or array is still empty */
};
#define DOCUMENT_INIT(buf) ((struct document){ .out = (buf), .empty = true })

/* key NULL: an array's element, or the document itself. open: '{' or '['. */
void document_open(struct document *d, const char *key, char open);
void document_close(struct document *d, char close);
void document_string(struct document *d, const char *key, const char *value);
void document_uint(struct document *d, const char *key, uint64_t value);
void document_bool(struct document *d, const char *key, bool value);
/* Ends the document and prints it. 0 or -errno. */
int document_print(struct document *d);
