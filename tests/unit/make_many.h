/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A capture in which all CPUs write in turns, each its next event 100 ns after the CPU before it
 * had one: no merge has more to do for an event.
 *
 * Of a kind: numbers, the smallest events there are; sched; mixed with system calls; marks, as long
 * as a sub-buffer holds; hits, of 20,000 functions; functions, of as many, and stacks of them, of
 * which most is in a Perfetto trace for the way back; phases, of one kind after the other.
 */
#pragma once

#include "make_stream.h"

struct many_kind;

/* NULL: there is none of that name. */
const struct many_kind *many_find(const char *name);
/* The whole stream, from its head to its end. */
void many_put(struct maker *m, const struct many_kind *kind, unsigned cpus, uint64_t events);
