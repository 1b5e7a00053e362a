/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stream/poll_source.h"

#include <stddef.h>

const char *poll_source_name(unsigned source)
{
	static const char *const names[POLL_SOURCES] = {
		[POLL_MEMINFO] = "meminfo",
		[POLL_VMSTAT] = "vmstat",
		[POLL_STAT] = "stat",
		[POLL_CPUFREQ] = "cpufreq",
		[POLL_PSI] = "psi",
		[POLL_THERMAL] = "thermal",
		[POLL_DISKSTATS] = "diskstats",
		[POLL_PROCESS_MEMORY] = "process-memory",
	};

	return source < POLL_SOURCES ? names[source] : NULL;
}
