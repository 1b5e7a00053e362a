/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Application marks and samples, in streams of their own. */
#pragma once

#include "formats/ctf/ctf.h"

struct ctf_marks;

int ctf_marks_new(struct ctf_marks **ret, struct ctf *c);
struct ctf_marks *ctf_marks_free(struct ctf_marks *m);
/* 0; -ENOMEM; -EOVERFLOW: too many classes; or the error of writing. */
int ctf_marks_put(struct ctf_marks *m, const struct mark *mark);
int ctf_marks_flush(struct ctf_marks *m);
