/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A capture in which all CPUs write in turn, each 100 ns after the CPU before it: the most work per
 * event for the merge.
 *
 * Kinds: numbers, the smallest events; sched; mixed with system calls; irqs; calls, of the system;
 * marks, as long as a sub-buffer allows; hits, of 20,000 functions; functions, of as many, with
 * stacks that fill a Perfetto trace; phases, one kind after the other.
 */
#pragma once

#include "make_stream.h"

struct many_kind;

/* NULL: no kind has that name. */
const struct many_kind *many_find(const char *name);
/* Writes the whole stream. */
void many_put(struct maker *m, const struct many_kind *kind, unsigned cpus, uint64_t events);
