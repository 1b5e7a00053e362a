/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A small trace.dat of any word size and byte order, version 6 or 7, uncompressed. Sub-buffers are
 * those that a struct maker holds: page_begin to page_end. Every failure fails the test.
 */
#pragma once

#include "make_stream.h"

struct dat_option {
	unsigned id;
	const void *value;
	size_t len;
};

struct dat_maker {
	const struct maker *m; /* machine, and sub-buffers of CPU 0 */
	unsigned version;
	const struct dat_option *options;
	size_t option_count;
	/* Instances "one", "two", ...: with the same sub-buffers, beside the top-level buffer. */
	unsigned instances;
};

/* Appends the file. Its events: those of maker_head's ID_NUMBER alone. */
void make_dat(const struct dat_maker *d, struct buf *out);
