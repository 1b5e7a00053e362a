/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Events whose fields are of every kind that kernels have, for machines of any word size. */
#pragma once

#include "make_stream.h"

/* Their formats, symbols and strings. */
void maker_kinds(struct maker *m);
/* One of each, from ts on. */
void event_kinds(struct maker *m, uint64_t ts);
