/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report that an output shows beside the events: --report of `convert`. */
#pragma once

#include "named_reports.h"

struct export_format;

struct page_tables {
	struct named_reports reports;
	int fd;		 /* owned; for the report, before it is in json */
	struct buf json; /* empty: none is wanted */
};
#define PAGE_TABLES_INIT                                                                           \
	{                                                                                          \
		.fd = -EBADF, .json = BUF_INIT                                                     \
	}

/*
 * Before the input is parsed: opens what page_tables_make() needs. ret must not move. -EINVAL: bad
 * names, or the format shows no report.
 */
int page_tables_open(struct page_tables *ret, const struct options *o,
		     const struct export_format *format, struct error *err);
/*
 * Reads the capture stream and sets options->tables, if a report is wanted. -ENODATA: the recording
 * has no events for it.
 */
int page_tables_make(struct page_tables *t, int stream_fd, struct export_options *options,
		     struct error *err);
void page_tables_deinit(struct page_tables *t);
#define _cleanup_page_tables_ _cleanup_(page_tables_deinit)
