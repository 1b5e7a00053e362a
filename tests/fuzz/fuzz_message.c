/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A board's message of its status. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "fleet/fleet_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct board_status s = { 0 };
	int r = board_status_read(&s, 17, (const char *)data, size, &err);

	if ((r < 0) != !!err.message)
		abort();
	if (strnlen(s.state, sizeof(s.state)) == sizeof(s.state) ||
	    strnlen(s.outcome, sizeof(s.outcome)) == sizeof(s.outcome) ||
	    strnlen(s.reason, sizeof(s.reason)) == sizeof(s.reason) || *s.board)
		abort();
	return 0;
}
