/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parts of several machines, each an output of the same exporter, become one file. */
#pragma once

#include "base/error.h"
#include "export/export.h"
#include "export/output.h"

struct export_part {
	int fd;		   /* seekable; the part */
	const char *label; /* of its machine */
	uint64_t first;	   /* ns: a time in the part, for readers that want one */
	const char *tie;   /* a sentence on its clock */
	const struct host_clock *clock;
	const struct host_numbers *numbers;
};

/* Reads a part from its begin, by pread() alone. */
struct part_reader {
	int fd; /* borrowed; -EBADF: all is in ahead */
	off_t at;
	struct buf ahead; /* owned */
	size_t used;	  /* bytes of ahead that were taken */
};
/* Makes len bytes available behind `used`; fewer at the end. 0 or -errno. */
int part_reader_need(struct part_reader *r, size_t len);

/* In struct export_format. The parts' times are of one clock. result: of all machines. */
typedef int export_join_func(const struct export_part *parts, size_t count,
			     const struct export_result *result, struct output *out,
			     struct error *err);
