/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file format that can be imported. Its reader turns the file into a capture stream without
 * decoding events. To add one: a folder and a line in formats/import.c. Input is hostile; no reader
 * needs privilege.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "stream/writer.h"

struct import_options {
	const char *instance; /* read only this buffer, "": the top-level one; NULL: all */
	uint64_t limit;	      /* largest stream in bytes; 0: no limit */
};

struct reader_ops {
	/* Whether the first bytes of a file may begin such a file. */
	bool (*begins)(const void *data, size_t len);
	/* See import_stream(). */
	int (*read)(int in, struct stream_writer *w, const struct import_options *o,
		    struct error *err);
};
