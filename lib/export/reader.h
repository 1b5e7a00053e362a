/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A kind of file that can be read as a recording. Its reader turns the file into a capture stream
 * without decoding events; whatever reads a stream reads that one. Adding a kind is a folder and a
 * line in formats/import.c. Input is hostile; no reader needs privilege.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "stream/writer.h"

struct import_options {
	const char *instance; /* read this buffer only, "" the top-level one; NULL: all */
	uint64_t limit;	      /* bytes that the stream may have; 0: any number */
};

struct reader_ops {
	/* Whether data, the first bytes of a file, may begin such a file. */
	bool (*begins)(const void *data, size_t len);
	/* As import_stream(). */
	int (*read)(int in, struct stream_writer *w, const struct import_options *o,
		    struct error *err);
};
