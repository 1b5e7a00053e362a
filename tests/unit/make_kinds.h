/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events with fields of every kind that exporters treat differently, with known values; for
 * machines of any word size. make_fields.h has one event with all types of C.
 */
#pragma once

#include "make_stream.h"

/* Writes their formats, symbols and strings. */
void maker_kinds(struct maker *m);
/* Writes one of each, from ts on. */
void event_kinds(struct maker *m, uint64_t ts);
