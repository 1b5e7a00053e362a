/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Counters of applications: one track per series, below the process's track. */
#pragma once

#include "formats/perfetto/marks.h"

/* Appends the counter's packets to out. -EINVAL: it has no number; or another -errno. */
int pf_marks_put_counter(struct pf_marks *m, const struct mark *mark, struct buf *out);
