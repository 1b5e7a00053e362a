/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "clocks.h"

#include <string.h>

#include "daemon/capture/tracefs/tracefs.h"

bool clocks_list(struct buf *out)
{
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;

	/* Architectures add clocks. */
	if (tracefs_open(&fs, NULL, NULL) == 0 && tracefs_list(fs, TRACEFS_CLOCKS, out) == 0)
		return true;
	buf_clear(out);
	buf_puts(out, "boot mono mono_raw tai local global perf uptime counter");
	return false;
}

int clocks_check(const char *clock, struct error *err)
{
	_cleanup_buf_ struct buf clocks = BUF_INIT;
	const char *p;

	/* Otherwise the daemon says it. */
	if (!clocks_list(&clocks) || !buf_string(&clocks))
		return 0;
	for (p = clocks.data; *p; p += strcspn(p, " ")) {
		size_t len;

		p += strspn(p, " ");
		len = strcspn(p, " ");
		if (len && len == strlen(clock) && !strncmp(p, clock, len))
			return 0;
	}
	error_set(err, -EINVAL, "this kernel has no trace clock '%s'", clock);
	return error_hint(err, "it has: %s", clocks.data);
}
