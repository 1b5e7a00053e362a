/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes values of marks as JSON. */
#pragma once

#include "base/buf.h"
#include "marks/value.h"

/* Writes a quoted string. */
void json_put_text(struct buf *out, struct text text);
/* Writes a scalar, or the opening bracket of a list or object. */
void json_put_value(struct buf *out, const struct value *v);
/* Writes the members of an object without its braces. Closes what a truncated value leaves open. */
void json_put_members(struct buf *out, struct text members);
/* The same. change may alter each value and its key before they are written; depth: 0 for members.
 */
typedef void json_change_t(struct value *v, unsigned depth, void *userdata);
void json_put_changed_members(struct buf *out, struct text members, json_change_t *change,
			      void *userdata);
/* Writes ns as microseconds, with a fraction only if needed. */
void json_put_us(struct buf *out, uint64_t ns);
