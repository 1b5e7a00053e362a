/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/message.h"

#include <endian.h>
#include <xxhash.h>

#include "base/secret_hash.h"
#include "base/utf8.h"
#include "formats/perfetto/wire.h"

#define INTERNED_MAX (1U << 16)
#define INTERNED_BYTES_MAX (8U << 20)
#define INTERNED_TEXT_MAX 1024 /* longest interned string in bytes */

struct pf_interned {
	char *text; /* owned; NULL: free slot */
	uint32_t len, iid;
};

DEFINE_TABLE(pf_texts, struct pf_interned, struct text, slot->text,
	     XXH3_64bits_withSeed(slot->text, slot->len, hash_secret[0]),
	     text_equal((struct text){ slot->text, slot->len }, key));

size_t pf_open(struct buf *out, uint32_t field)
{
	uint8_t *p = (uint8_t *)buf_reserve(out, WIRE_TAG_MAX + 1);

	if (p)
		out->len += (size_t)(wire_open(p, field) - p);
	return out->len;
}

void pf_close(struct buf *out, size_t content)
{
	uint8_t *end;

	if (!buf_reserve(out, WIRE_VARINT_MAX) || out->failed)
		return;
	end = wire_close((uint8_t *)out->data + content, (uint8_t *)out->data + out->len);
	out->len = (size_t)(end - (uint8_t *)out->data);
}

size_t pf_open_wide(struct buf *out, uint32_t field)
{
	uint8_t *p = (uint8_t *)buf_reserve(out, WIRE_TAG_MAX + WIRE_WIDE);

	if (p)
		out->len += (size_t)(wire_open_wide(p, field) - p);
	return out->len;
}

void pf_close_wide(struct buf *out, size_t content)
{
	if (!out->failed)
		wire_close_wide((uint8_t *)out->data + content, out->len - content);
}

void pf_uint(struct buf *out, uint32_t field, uint64_t value)
{
	uint8_t *p = (uint8_t *)buf_reserve(out, WIRE_TAG_MAX + WIRE_VARINT_MAX);

	if (p)
		out->len += (size_t)(wire_uint(p, field, value) - p);
}

void pf_fixed64(struct buf *out, uint32_t field, uint64_t value)
{
	uint8_t *p = (uint8_t *)buf_reserve(out, WIRE_TAG_MAX + sizeof(value)), *at;

	if (!p)
		return;
	at = wire_tag(p, field, WIRE_FIXED64);
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
	out->len += (size_t)(at - p) + sizeof(value);
}

void pf_double(struct buf *out, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	pf_fixed64(out, field, bits);
}

void pf_text(struct buf *out, uint32_t field, struct text text)
{
	size_t content = pf_open(out, field);
	char *p = buf_reserve(out, (size_t)text.len * UTF8_GROWTH + 1);

	if (p)
		out->len += (size_t)(utf8_clean(p, text.data, text.len) - p);
	pf_close(out, content);
}

void pf_bytes(struct buf *out, uint32_t field, const void *data, size_t len)
{
	uint8_t *p = (uint8_t *)buf_reserve(out, WIRE_TAG_MAX + WIRE_VARINT_MAX + len);

	if (p)
		out->len += (size_t)(wire_bytes(p, field, data, len) - p);
}

void pf_interner_deinit(struct pf_interner *i)
{
	TABLE_FOR_EACH(pf_texts, &i->texts, s)
	free(s->text);
	free(i->texts.slots);
	*i = (struct pf_interner){ .field = i->field, .max = i->max };
}

static uint64_t message_intern(struct pf_interner *i, struct text text, bool bytes,
			       struct buf *fresh)
{
	struct pf_interned *s;
	size_t content;

	if (!text.len || text.len > INTERNED_TEXT_MAX)
		return 0;
	s = pf_texts_place(&i->texts, XXH3_64bits_withSeed(text.data, text.len, hash_secret[0]),
			   text);
	if (!s)
		return 0;
	if (s->text)
		return s->iid;
	if (i->texts.count == (i->max ?: INTERNED_MAX) || i->bytes + text.len > INTERNED_BYTES_MAX)
		return 0;
	s->text = malloc(text.len);
	if (!s->text)
		return 0;
	memcpy(s->text, text.data, text.len);
	s->len = text.len;
	s->iid = ++i->texts.count;
	i->bytes += text.len;
	content = pf_open(fresh, i->field);
	pf_uint(fresh, 1, s->iid);
	if (bytes)
		pf_bytes(fresh, 2, text.data, text.len);
	else
		pf_text(fresh, 2, text);
	pf_close(fresh, content);
	return s->iid;
}

uint64_t pf_intern(struct pf_interner *i, struct text text, struct buf *fresh)
{
	return message_intern(i, text, false, fresh);
}

uint64_t pf_intern_bytes(struct pf_interner *i, struct text bytes, struct buf *fresh)
{
	return message_intern(i, bytes, true, fresh);
}
