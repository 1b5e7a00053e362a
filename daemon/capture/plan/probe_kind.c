/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/plan/probe_kind.h"

#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "daemon/capture/tracefs/tracefs.h"

#define KALLSYMS_MAX (64U << 20)

const struct probe_kind probe_kinds[PROBE_KINDS] = {
	[PROBE_KPROBE] = { "kprobe", "kprobe_events", "pr", "p:NAME FUNCTION ARGUMENTS", NULL, NULL,
			   false },
	[PROBE_UPROBE] = { "uprobe", "uprobe_events", "pr",
			   "p:NAME /PATH/OF/PROGRAM:0xOFFSET ARGUMENTS", NULL, NULL, true },
	[PROBE_FPROBE] = { "fprobe", "dynamic_events", "f", "f:NAME FUNCTION%return ARGUMENTS",
			   " f[:[<group>/]", NULL, false },
	[PROBE_TPROBE] = { "tprobe", "dynamic_events", "t", "t:NAME TRACEPOINT ARGUMENTS",
			   " t[:[<group>/]", NULL, false },
	[PROBE_EPROBE] = { "eprobe", "dynamic_events", "e", "e:NAME SYSTEM:EVENT ARGUMENTS",
			   " e[:[<group>/]", " eprobe_dyn_event_create\n", false },
};

static bool file_has(int dir, const char *file, const char *text)
{
	_cleanup_buf_ struct buf content = BUF_INIT;

	return read_file_at(dir, file, KALLSYMS_MAX, &content) == 0 && buf_string(&content) &&
	       strstr(content.data, text);
}

bool probe_kind_exists(const struct tracefs *fs, const char *proc, const struct probe_kind *kind)
{
	char path[256];

	if (faccessat(tracefs_root(fs), kind->file, F_OK, 0) < 0 ||
	    (kind->readme && !file_has(tracefs_root(fs), "README", kind->readme)))
		return false;
	snprintf(path, sizeof(path), "%s/kallsyms", proc ?: "");
	return !proc || !kind->symbol || file_has(AT_FDCWD, path, kind->symbol);
}

const struct probe_kind *probe_kind_of(const char *file, const char *line)
{
	for (size_t i = 0; i < PROBE_KINDS; i++)
		if (strcmp(file, probe_kinds[i].file) == 0 && *line &&
		    strchr(probe_kinds[i].types, *line))
			return &probe_kinds[i];
	return NULL;
}
