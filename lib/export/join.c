/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/join.h"

#include "base/io.h"

#define READ_BYTES (256U << 10)

int part_reader_need(struct part_reader *r, size_t len)
{
	ssize_t n;

	if (r->fd < 0 || r->ahead.len - r->used >= len)
		return 0;
	buf_replace(&r->ahead, 0, r->used, "", 0);
	r->used = 0;
	len = MAX(len, (size_t)READ_BYTES) - r->ahead.len;
	if (!buf_reserve(&r->ahead, len))
		return -ENOMEM;
	n = pread_full(r->fd, r->ahead.data + r->ahead.len, len, r->at);
	if (n < 0)
		return (int)n;
	r->at += n;
	r->ahead.len += (size_t)n;
	return 0;
}
