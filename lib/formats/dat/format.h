/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Constants of trace.dat for writer and reader, from trace-cmd.dat.v6(5), trace-cmd.dat.v7(5) and
 * trace-cmd's lib/trace-cmd/include/private/trace-cmd-private.h.
 */
#pragma once

#define DAT_MAGIC "\x17\x08\x44tracing"
#define DAT_MAGIC_SIZE 10

/* Parts that describe the events, in the order of version 6. */
enum dat_part {
	DAT_HEADER_INFO,
	DAT_FTRACE_FORMATS,
	DAT_FORMATS,
	DAT_KALLSYMS,
	DAT_PRINTK,
	DAT_CMDLINES,
	DAT_PARTS,
};

/* In version 7 also section ids: the option gives the section's offset. */
enum dat_option {
	DAT_OPTION_DONE = 0, /* also the section of options */
	DAT_OPTION_DATE = 1,
	DAT_OPTION_CPUSTAT = 2,
	DAT_OPTION_BUFFER = 3,
	DAT_OPTION_TRACECLOCK = 4,
	DAT_OPTION_UNAME = 5,
	DAT_OPTION_OFFSET = 7,
	DAT_OPTION_CPUCOUNT = 8,
	DAT_OPTION_VERSION = 9,
	DAT_OPTION_TRACEID = 11,
	DAT_OPTION_TIME_SHIFT = 12,
	DAT_OPTION_TSC2NSEC = 14,
	DAT_OPTION_PARTS = 16, /* from here one for each enum dat_part */
	DAT_OPTION_BUFFER_TEXT = DAT_OPTION_PARTS + DAT_PARTS,
};

/* Flag of a section. */
#define DAT_SECTION_PACKED 1
