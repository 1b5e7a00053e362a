/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An event with a field of every type: numbers of each size, arrays and dynamic ones. Its text
 * prints all of them. For machines of any word size. make_kinds.h has the kinds that exporters tell
 * apart.
 */
#pragma once

#include "make_stream.h"

/* Writes its format and symbols. */
void maker_fields(struct maker *m);
/*
 * Writes one event with random values and with limits of widths and signs. random: the state of
 * random_next.
 */
void event_fields(struct maker *m, uint64_t ts, uint64_t *random);
