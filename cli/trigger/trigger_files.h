/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Snapshots of triggers: their names, and which of them are kept. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "report/watch_condition.h"

/* Appends a time in UTC: "20261127T231501.123Z". */
void snapshot_put_time(struct buf *out, uint64_t real_ns);
/* Appends "SESSION-20261127T231501.123Z-sched.delay.json"; real_ns: when it fired. */
void trigger_file_name(struct buf *out, const char *session, uint64_t real_ns,
		       const struct watch_condition *c, const char *ending);
/*
 * Removes the oldest files with such names in the folder until at most `keep` are left, of `bytes`
 * together; 0: any number. `newest` stays, which the name does not show if the clock was set back.
 * Returns how many it removed, or -errno.
 */
int trigger_files_keep(const char *folder, const char *session, const char *ending,
		       const char *newest, unsigned keep, uint64_t bytes);
