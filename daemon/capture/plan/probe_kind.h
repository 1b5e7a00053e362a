/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kinds of probes: where the kernel takes them, and how they are written. */
#pragma once

#include <stdbool.h>

enum probe_kind_id { /* as traced.control.Probe.Kind */
		     PROBE_KPROBE,
		     PROBE_UPROBE,
		     PROBE_FPROBE,
		     PROBE_TPROBE,
		     PROBE_EPROBE,
		     PROBE_KINDS,
};

struct probe_kind {
	const char *name;   /* of its option, and in recordings */
	const char *file;   /* where it is defined */
	const char *types;  /* letters that a definition may begin with; the first is usual */
	const char *usage;  /* an example's form */
	const char *readme; /* text that tracefs' README has with it; NULL: the file says it */
	const char *symbol; /* a function of the kernel with it; NULL: README says it */
	bool user;	    /* in a program: the place begins with a path */
};
/* Root alone may make any: arguments read memory, of the kernel's or of a program's. */
extern const struct probe_kind probe_kinds[PROBE_KINDS];

struct tracefs;
/*
 * Whether this kernel has the kind. proc: "/proc", to look for .symbol; NULL: README alone is
 * asked, which names eprobes also in a kernel without them.
 */
bool probe_kind_exists(const struct tracefs *fs, const char *proc, const struct probe_kind *kind);
/* The kind of a line "p:GROUP/NAME ..." in that file; NULL: another file. */
const struct probe_kind *probe_kind_of(const char *file, const char *line);
