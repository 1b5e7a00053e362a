/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Appends nested protobuf messages to a buffer, field by field, and interns strings. */
#pragma once

#include "base/table.h"
#include "marks/value.h"

/* Begins a submessage; pass the result to pf_close() after its fields. */
size_t pf_open(struct buf *out, uint32_t field);
void pf_close(struct buf *out, size_t content);

/* For long submessages: the content never moves. */
size_t pf_open_wide(struct buf *out, uint32_t field);
void pf_close_wide(struct buf *out, size_t content);

void pf_uint(struct buf *out, uint32_t field, uint64_t value);
void pf_fixed64(struct buf *out, uint32_t field, uint64_t value);
void pf_double(struct buf *out, uint32_t field, double value);
/* Invalid UTF-8 is replaced. */
void pf_text(struct buf *out, uint32_t field, struct text text);
/* A complete message, or any bytes. */
void pf_bytes(struct buf *out, uint32_t field, const void *data, size_t len);
static inline void pf_message(struct buf *out, uint32_t field, const struct buf *content)
{
	pf_bytes(out, field, content->data, content->len);
	out->failed |= content->failed;
}

DECLARE_TABLE(pf_texts, struct pf_interned);

/* Interns strings for one field of InternedData. */
struct pf_interner {
	uint32_t field;
	struct pf_texts texts;
	size_t bytes;
	uint32_t max; /* of strings; 0: the usual limit */
};
void pf_interner_deinit(struct pf_interner *i);
/*
 * Returns the number of text; a new one is appended to `fresh`, the content of an InternedData. 0:
 * too many or too long; write the text itself.
 */
uint64_t pf_intern(struct pf_interner *i, struct text text, struct buf *fresh);
/* The same for bytes that are no text. */
uint64_t pf_intern_bytes(struct pf_interner *i, struct text bytes, struct buf *fresh);
