/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A list of a store, of both kinds, and the same bytes as lines of the other process. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "fleet/fleet_listing.h"
#include "fleet/result_name.h"

static void check_names(const struct listing *l)
{
	struct result_name name;

	for (size_t i = 0; i < l->count; i++) {
		const char *text = l->items[i].name;

		if (!*text || text[0] == '/' || strstr(text, "..") ||
		    strpbrk(text, "\"\\ \x1b\r\t%"))
			abort();
		if (result_name_parse(text, &name) && strchr(name.board, '/'))
			abort();
	}
	if (l->next.len && memchr(l->next.data, '&', l->next.len))
		abort();
}

static void take(struct buf *lines)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_listing_ struct listing l = { 0 };

	if (listing_take_lines(&l, lines, &err) < 0 && !err.message)
		abort();
	check_names(&l);
}

static void read_answer(const struct buf *answer, bool is_s3)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf lines = BUF_INIT;
	int r = listing_read(answer, is_s3, &lines, &err);

	if (r < 0 && !err.message)
		abort();
	if (r == 0)
		take(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_buf_ struct buf answer = BUF_INIT;

	buf_append(&answer, (const char *)data, size);
	read_answer(&answer, false);
	read_answer(&answer, true);
	take(&answer);
	return 0;
}
