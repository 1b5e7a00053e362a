/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The files of procfs and sysfs that a recording can read at intervals. */
#pragma once

enum poll_source { /* as traced.capture.Poll.Source */
		   POLL_MEMINFO = 1,
		   POLL_VMSTAT,
		   POLL_STAT,
		   POLL_CPUFREQ,
		   POLL_PSI,
		   POLL_THERMAL,
		   POLL_DISKSTATS,
		   POLL_PROCESS_MEMORY,
		   POLL_SOURCES,
};

/* The name in options and in traces; NULL: no such source. */
const char *poll_source_name(unsigned source);
