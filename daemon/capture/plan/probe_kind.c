/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/probe_kind.h"

#include <fcntl.h>
#include <string.h>

#include "daemon/capture/tracefs/tracefs.h"

const struct probe_kind probe_kinds[PROBE_KINDS] = {
	[PROBE_KPROBE] = { "kprobe", "kprobe_events", "pr", "p:NAME FUNCTION ARGUMENTS",
			   "CONFIG_KPROBE_EVENTS", NULL, false },
	[PROBE_UPROBE] = { "uprobe", "uprobe_events", "pr",
			   "p:NAME /PATH/OF/PROGRAM:0xOFFSET ARGUMENTS", "CONFIG_UPROBE_EVENTS",
			   NULL, true },
	[PROBE_FPROBE] = { "fprobe", "dynamic_events", "f", "f:NAME FUNCTION%return ARGUMENTS",
			   "CONFIG_FPROBE_EVENTS, Linux 6.5", " f[:[<group>/]", false },
	[PROBE_TPROBE] = { "tprobe", "dynamic_events", "t", "t:NAME TRACEPOINT ARGUMENTS",
			   "CONFIG_FPROBE_EVENTS, Linux 6.5", " t[:[<group>/]", false },
	[PROBE_EPROBE] = { "eprobe", "dynamic_events", "e", "e:NAME SYSTEM:EVENT ARGUMENTS",
			   "CONFIG_PROBE_EVENTS, Linux 5.15", " e[:[<group>/]", false },
};

bool probe_kind_exists(const struct tracefs *fs, const struct probe_kind *kind)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (faccessat(tracefs_root(fs), kind->file, F_OK, 0) < 0)
		return false;
	return !kind->readme || (tracefs_read(tracefs_root(fs), "README", &text) == 0 &&
				 buf_string(&text) && strstr(text.data, kind->readme));
}

const struct probe_kind *probe_kind_of(const char *file, const char *line)
{
	for (size_t i = 0; i < PROBE_KINDS; i++)
		if (strcmp(file, probe_kinds[i].file) == 0 && *line &&
		    strchr(probe_kinds[i].types, *line))
			return &probe_kinds[i];
	return NULL;
}
