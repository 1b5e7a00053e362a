/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Words of messages that depend on a count. */
#pragma once

#include <stdint.h>

static inline const char *plural(uint64_t count, const char *one, const char *more)
{
	return count == 1 ? one : more;
}

/* The ending of most nouns. */
static inline const char *plural_s(uint64_t count)
{
	return plural(count, "", "s");
}
