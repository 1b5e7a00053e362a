/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of events/header_page; its first byte says whether the size is given separately. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "stream/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct subbuf_layout l;
	char *text;

	if (!size)
		return 0;
	/* A block of its own, so that a sanitizer sees reads beyond it. */
	text = malloc(size - 1 ? size - 1 : 1);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	if (subbuf_layout_parse(&l, text, size - 1, data[0] * 4096U) == 0 &&
	    (l.size > SUBBUF_SIZE_MAX || l.data_offset + 4 > l.size ||
	     l.commit_offset + l.commit_size > l.data_offset ||
	     l.timestamp_offset + 8 > l.data_offset))
		abort();
	free(text);
	return 0;
}
