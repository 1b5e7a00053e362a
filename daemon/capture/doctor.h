/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reports what on this machine helps or hinders a recording, and how to fix it. */
#pragma once

#include <stddef.h>

#include "base/cleanup.h"

enum doctor_verdict { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_WARN, DOCTOR_BAD };

struct doctor_finding {
	const char *check; /* short name, static: "tracefs", "lockdown", ... */
	enum doctor_verdict verdict;
	char *text; /* the finding; owned */
	char *mend; /* how to fix it, or NULL; owned */
};

struct doctor_report {
	struct doctor_finding *findings;
	size_t count;
};

struct doctor_env {
	const char *tracefs;	/* NULL: find it */
	const char *proc, *sys; /* "/proc", "/sys" */
	const char *socket;	/* the daemon's socket */
};

int doctor_examine(const struct doctor_env *env, struct doctor_report *ret);
/* Adds a finding; mend NULL: nothing to fix. Returns 0 or -ENOMEM. */
int doctor_add(struct doctor_report *r, const char *check, enum doctor_verdict verdict,
	       const char *mend, const char *fmt, ...) _printf_(5, 6);
void doctor_report_deinit(struct doctor_report *r);
#define _cleanup_doctor_report_ _cleanup_(doctor_report_deinit)
