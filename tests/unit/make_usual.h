/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A recording with something of everything that exporters treat in their own way. */
#pragma once

#include "make_stream.h"

#define MS UINT64_C(1000000)
#define S (UINT64_C(1000) * MS)

/* Two CPUs, a gap, a task that is born and renamed, marks; a second life of tid 7. */
void maker_usual(struct maker *m);
