/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/mend.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/io.h"
#include "export/mend.h"
#include "formats/perfetto/packet.h"

#define PACKET_TAG 0x0a /* Trace.packet: field 1, length-delimited */

/* data: a packet's beginning, where its small fields stand. */
static bool mend_has_events(const uint8_t *data, size_t len)
{
	size_t at = 0;

	while (at < len) {
		uint64_t words[2] = { 0 }; /* tag; value or length */

		for (int i = 0; i < 2; i++) {
			for (unsigned shift = 0; at < len && shift < 64; shift += 7) {
				words[i] |= (uint64_t)(data[at] & 0x7f) << shift;
				if (!(data[at++] & 0x80))
					break;
			}
		}
		switch (words[0] >> 3) {
		/* These hold events, or names that events refer to. */
		case PACKET_FTRACE_EVENTS:
		case PACKET_SYS_STATS:
		case PACKET_PROCESS_STATS:
		case PACKET_TRACK_EVENT:
		case PACKET_INTERNED_DATA:
		case PACKET_COMPRESSED:
		case PACKET_PERF_SAMPLE:
		case PACKET_ZSTD:
			return true;
		}
		if ((words[0] & 7) != 0 && ((words[0] & 7) != 2 || words[1] > len - at))
			return false;
		at += (words[0] & 7) == 2 ? (size_t)words[1] : 0;
	}
	return false;
}

int pf_mend(int fd, off_t size)
{
	bool events = false;
	off_t at = 0;

	for (;;) {
		unsigned char head[64];
		ssize_t n = pread_full(fd, head, sizeof(head), at);
		uint64_t len = 0;
		int i = 1;

		if (n < 0)
			return (int)n;
		if (!at && n > 0 && head[0] != PACKET_TAG)
			return -EBADMSG;
		if (n < 2 || head[0] != PACKET_TAG)
			break;
		for (; i < MIN(n, 11); i++) {
			len |= (uint64_t)(head[i] & 0x7f) << (7 * (i - 1));
			if (!(head[i] & 0x80))
				break;
		}
		if (i == MIN(n, 11) || len > (uint64_t)(size - at - i - 1))
			break;
		events = events ||
			 mend_has_events(head + i + 1, MIN((size_t)(n - i - 1), (size_t)len));
		at += i + 1 + (off_t)len;
	}
	return mend_cut(fd, events ? at : 0);
}
