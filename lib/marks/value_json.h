/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values of marks as JSON. */
#pragma once

#include "base/buf.h"
#include "marks/value.h"

/* A string with its quotes. */
void json_put_text(struct buf *out, struct text text);
/* A scalar, or the opening bracket of a list or dict. */
void json_put_value(struct buf *out, const struct value *v);
/* The members of a dict, without its braces. What a cut value leaves open is closed. */
void json_put_members(struct buf *out, struct text members);
/* ns as microseconds, with a fraction where it is needed. */
void json_put_us(struct buf *out, uint64_t ns);
