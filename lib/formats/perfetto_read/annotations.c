/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/annotations.h"

#include <inttypes.h>
#include <math.h>

#include "base/utf8.h"
#include "formats/perfetto/numbers.h"
#include "marks/sort.h"

/* Lists and dicts within each other: the arguments themselves are one more to JSON's reader. */
#define DEPTH_MAX (VALUE_DEPTH_MAX - 3)

size_t text_clean_size(struct text text, size_t max)
{
	const unsigned char *p = (const unsigned char *)text.data;
	size_t clean = 0, left = text.len;

	if (text.len <= max / UTF8_GROWTH && utf8_is_ascii(text.data, text.len))
		return text.len;
	while (left && clean <= max) {
		size_t n = utf8_length(p, left);

		clean += n ?: strlen(UTF8_REPLACEMENT);
		p += n ?: 1;
		left -= n ?: 1;
	}
	return clean;
}

struct text text_fit(struct text text)
{
	const unsigned char *p = (const unsigned char *)text.data;
	size_t clean = 0, at = 0;

	if (text.len <= ANNOTATION_TEXT_MAX / UTF8_GROWTH)
		return text;
	while (at < text.len) {
		size_t n = utf8_length(p + at, text.len - at);

		clean += n ?: strlen(UTF8_REPLACEMENT);
		if (clean > ANNOTATION_TEXT_MAX)
			break;
		at += n ?: 1;
	}
	return (struct text){ text.data, (uint32_t)at };
}

/* An annotation, as far as it does not contain others. */
struct draft {
	struct text name;
	struct wire_field value; /* the last one; number 0: none */
	bool dict, list, bad;
};

static void read_flat(struct draft *d, const struct wire_field *annotation,
		      const struct interned *in)
{
	struct wire_reader r = wire_reader_in(annotation);
	struct wire_field f;

	*d = (struct draft){ 0 };
	while (wire_read(&r, &f)) {
		switch (f.number) {
		case ANNOTATION_NAME_IID:
			d->name = interned_text(in, INTERNED_KEY, f.value);
			break;
		case ANNOTATION_NAME:
			d->name = (struct text){ (const char *)f.data, (uint32_t)f.len };
			break;
		case ANNOTATION_DICT_ENTRIES:
			d->dict = true;
			break;
		case ANNOTATION_ARRAY_VALUES:
			d->list = true;
			break;
		case ANNOTATION_BOOL ... ANNOTATION_POINTER:
			d->value = f;
			break;
		}
	}
	d->bad = r.bad;
}

/* Text as a reader of the JSON has it, so that its length is known here. */
static void put_text(struct buf *out, const struct text *key, struct text text, struct buf *scratch)
{
	text = text_fit(text);
	if (!utf8_is_ascii(text.data, text.len)) {
		char *room;

		buf_clear(scratch);
		room = buf_reserve(scratch, (size_t)text.len * UTF8_GROWTH);
		if (!room) {
			out->failed = true;
			return;
		}
		text.len = (uint32_t)(utf8_clean(room, text.data, text.len) - room);
		text.data = room;
	}
	value_put_text(out, key, text);
}

/* Numbers that JSON has none for are strings. */
static void put_double(struct buf *out, const struct text *key, uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof(d));
	if (isnan(d))
		value_put_text(out, key, TEXT("NaN"));
	else if (isinf(d))
		value_put_text(out, key, d > 0 ? TEXT("Infinity") : TEXT("-Infinity"));
	else
		value_put_u64(out, key, VALUE_DOUBLE, bits);
}

/* False: it is not of the type that its field has. */
static bool put_value(struct buf *out, const struct text *key, const struct wire_field *v,
		      struct buf *scratch)
{
	static const enum wire_type types[] = {
		[ANNOTATION_BOOL] = WIRE_VARINT,  [ANNOTATION_UINT] = WIRE_VARINT,
		[ANNOTATION_INT] = WIRE_VARINT,	  [ANNOTATION_DOUBLE] = WIRE_FIXED64,
		[ANNOTATION_STRING] = WIRE_BYTES, [ANNOTATION_POINTER] = WIRE_VARINT,
	};
	char pointer[24];

	if (v->type != types[v->number])
		return false;
	switch (v->number) {
	case ANNOTATION_BOOL:
		value_put(out, key, v->value ? VALUE_TRUE : VALUE_FALSE);
		break;
	case ANNOTATION_UINT:
		value_put_u64(out, key, VALUE_UINT, v->value);
		break;
	case ANNOTATION_INT:
		value_put_u64(out, key, VALUE_INT, v->value);
		break;
	case ANNOTATION_DOUBLE:
		put_double(out, key, v->value);
		break;
	case ANNOTATION_POINTER:
		snprintf(pointer, sizeof(pointer), "0x%" PRIx64, v->value);
		value_put_text(out, key, (struct text){ pointer, (uint32_t)strlen(pointer) });
		break;
	default:
		put_text(out, key, (struct text){ (const char *)v->data, (uint32_t)v->len },
			 scratch);
	}
	return true;
}

/* As clean UTF-8, too; that may lie in room. */
static void clean_key(struct text *key, struct buf *room, struct buf *out)
{
	*key = text_fit(*key);
	if (utf8_is_ascii(key->data, key->len))
		return;
	if (!buf_reserve(room, (size_t)key->len * UTF8_GROWTH)) {
		out->failed = true;
		return;
	}
	key->len = (uint32_t)(utf8_clean(room->data, key->data, key->len) - room->data);
	key->data = room->data;
}

static unsigned put(struct buf *out, const struct wire_field *annotation, bool member,
		    const struct interned *in, struct buf *scratch, unsigned depth)
{
	struct wire_reader r = wire_reader_in(annotation);
	_cleanup_buf_ struct buf room = BUF_INIT;
	const struct text *key = NULL;
	unsigned missing = 0;
	struct wire_field f;
	struct draft d;
	bool dict;

	/* What is so long is no mark any more. */
	if (out->len > MARK_PACKED_MAX)
		return 1;
	read_flat(&d, annotation, in);
	if (member) {
		missing = !d.name.data;
		if (!d.name.data)
			d.name = TEXT("?");
		clean_key(&d.name, &room, out);
		key = &d.name;
	}
	if (d.value.number)
		return missing + d.bad + !put_value(out, key, &d.value, scratch);
	if (depth == DEPTH_MAX)
		return missing + 1;
	/* One that is empty does not tell which of the two it is. */
	dict = d.dict || !d.list;
	value_put(out, key, dict ? VALUE_DICT : VALUE_LIST);
	while (wire_read(&r, &f)) {
		if (f.number == (dict ? ANNOTATION_DICT_ENTRIES : ANNOTATION_ARRAY_VALUES) &&
		    f.type == WIRE_BYTES)
			missing += put(out, &f, dict, in, scratch, depth + 1);
	}
	value_put(out, NULL, VALUE_END);
	return missing + r.bad;
}

unsigned annotation_put(struct buf *out, const struct wire_field *annotation,
			const struct interned *in, struct buf *scratch)
{
	return put(out, annotation, true, in, scratch, 0);
}
