/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages of any depth, appended to a buffer field by field; and strings that are written
 * once and then go by number.
 */
#pragma once

#include "base/table.h"
#include "marks/value.h"

/* A submessage: its fields follow up to pf_close, which gets what pf_open returned. */
size_t pf_open(struct buf *out, uint32_t field);
void pf_close(struct buf *out, size_t content);

/* The same of one that may be long: its content never moves. */
size_t pf_open_wide(struct buf *out, uint32_t field);
void pf_close_wide(struct buf *out, size_t content);

void pf_uint(struct buf *out, uint32_t field, uint64_t value);
void pf_fixed64(struct buf *out, uint32_t field, uint64_t value);
void pf_double(struct buf *out, uint32_t field, double value);
/* Made UTF-8. */
void pf_text(struct buf *out, uint32_t field, struct text text);
/* A whole message, or bytes as they are. */
void pf_bytes(struct buf *out, uint32_t field, const void *data, size_t len);
static inline void pf_message(struct buf *out, uint32_t field, const struct buf *content)
{
	pf_bytes(out, field, content->data, content->len);
	out->failed |= content->failed;
}

DECLARE_TABLE(pf_texts, struct pf_interned);

/* One field of InternedData. */
struct pf_interner {
	uint32_t field;
	struct pf_texts texts;
	size_t bytes;
};
void pf_interner_deinit(struct pf_interner *i);
/*
 * The number of text; one that is new goes to fresh, InternedData's content. 0: there are
 * too many, or it is too long: then it is to be written as it is.
 */
uint64_t pf_intern(struct pf_interner *i, struct text text, struct buf *fresh);
