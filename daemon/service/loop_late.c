/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/loop_late.h"

#include <string.h>

#include "base/io.h"
#include "base/log.h"
#include "daemon/service/loop.h"

#define LATE_NS (100 * NSEC_PER_MSEC)
#define NAME_BYTES 64

/* The running callback sets it. Each one does, so it must be cheap. */
static struct {
	const char *what; /* NULL: unknown */
	char name[NAME_BYTES];
} doing;

void loop_doing(const char *what, const char *name)
{
	doing.what = what;
	snprintf(doing.name, sizeof(doing.name), "%s", name ?: "");
}

uint64_t loop_late_begin(void)
{
	doing.what = NULL;
	return now_ns(CLOCK_MONOTONIC);
}

void loop_late_end(uint64_t began_ns)
{
	static struct log_limit limit = LOG_LIMIT_INIT;
	uint64_t took = now_ns(CLOCK_MONOTONIC) - began_ns;

	if (likely(took < LATE_NS) || !log_limit_pass(&limit))
		return;
	log_notice("the event loop took %u ms for %s%s%s", (unsigned)(took / NSEC_PER_MSEC),
		   doing.what ?: "something", doing.what && *doing.name ? " " : "",
		   doing.what ? doing.name : "");
}
