/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Mends a truncated Perfetto trace. */
#include "formats/perfetto/mend.h"

#include "base/io.h"
#include "export/mend.h"

#define PACKET_TAG 0x0a /* Trace.packet: field 1, length-delimited */

/* Truncates after the last whole packet. -EBADMSG: not a trace. */
int pf_mend(int fd, off_t size)
{
	off_t at = 0;

	for (;;) {
		unsigned char head[11];
		ssize_t n = pread_full(fd, head, sizeof(head), at);
		uint64_t len = 0;
		int i = 1;

		if (n < 0)
			return (int)n;
		if (!at && n > 0 && head[0] != PACKET_TAG)
			return -EBADMSG;
		if (n < 2 || head[0] != PACKET_TAG)
			break;
		for (; i < n; i++) {
			len |= (uint64_t)(head[i] & 0x7f) << (7 * (i - 1));
			if (!(head[i] & 0x80))
				break;
		}
		if (i == n || len > (uint64_t)(size - at - i - 1))
			break;
		at += i + 1 + (off_t)len;
	}
	return mend_cut(fd, at);
}
