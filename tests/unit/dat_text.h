/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of a trace.dat, and of the stream made of it. */
#pragma once

#include "exported.h"
#include "make_dat.h"

/* Returns what import_stream() returns. instance: NULL for the whole file. */
int dat_to_text(const struct buf *dat, const char *instance, struct export_result *result,
		struct buf *out, struct error *err);
/* pages: as export_options.pages_fd. */
void stream_text(int stream, int pages, struct buf *text);
/* Sub-buffers of three numbers each; five events are lost before the third. */
void maker_dat_pages(struct maker *m, unsigned word_size, bool big_endian, unsigned pages);
