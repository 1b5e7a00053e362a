/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/fields.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "marks/json_value.h"
#include "marks/value.h"
#include "traced/mark_record.h"

/* Reads a length-prefixed text within room bytes. ret_padded: the bytes it occupies. */
static bool field_take_text(const struct mark_decode *d, const uint8_t *p, size_t room,
			    struct text *ret, size_t *ret_padded)
{
	uint32_t len = room < 4 ? UINT32_MAX : load_u32(p, d->big_endian);

	if (room < 4 || len > room - 4)
		return false;
	*ret = (struct text){ (const char *)p + 4, len };
	*ret_padded = (4 + (size_t)len + 7) & ~(size_t)7;
	return *ret_padded <= room;
}

int mark_field_next(struct mark_decode *d, const uint8_t **p, const uint8_t *end,
		    struct mark_field_value *f)
{
	const uint8_t *at = *p, *value;
	size_t size, room, padded = 0;
	uint32_t key;

	if (end - at < (ptrdiff_t)sizeof(struct mark_field))
		return end == at ? 0 : -EBADMSG;
	size = load_u16(at, d->big_endian) * 8U;
	if (size < sizeof(struct mark_field) || size > (size_t)(end - at))
		return -EBADMSG;
	*p = at + size;
	*f = (struct mark_field_value){ .kind = at[2], .type = at[3] };
	key = load_u32(at + 4, d->big_endian);
	value = at + sizeof(struct mark_field);
	room = size - sizeof(struct mark_field);
	if (f->kind == MARK_ARG && !key) {
		if (!field_take_text(d, value, room, &f->key, &padded))
			return -EBADMSG;
		value += padded;
		room -= padded;
	} else if (f->kind == MARK_ARG) {
		const struct label *l = label_find(&d->labels, d->shared, key);

		f->key = l ? l->name : TEXT("?");
	}
	switch (f->type) {
	case MARK_NONE:
		return 1;
	case MARK_STRING:
	case MARK_JSON:
		return field_take_text(d, value, room, &f->text, &padded) ? 1 : -EBADMSG;
	case MARK_ADDRESSES:
		f->text = (struct text){ (const char *)value, (uint32_t)room };
		return 1;
	default:
		if (room < 8)
			return -EBADMSG;
		f->number = load_u64(value, d->big_endian);
		return 1;
	}
}

static void field_put_addresses(struct mark_decode *d, struct text addresses,
				const struct text *key)
{
	value_put(&d->args, key, VALUE_LIST);
	for (uint32_t at = 0; at + 8 <= addresses.len; at += 8)
		value_put_u64(&d->args, NULL, VALUE_POINTER,
			      load_u64((const uint8_t *)addresses.data + at, d->big_endian));
	value_put(&d->args, NULL, VALUE_END);
}

void mark_field_put(struct mark_decode *d, const struct text *key, const struct mark_field_value *f)
{
	struct buf *out = &d->args;
	const struct label *l;
	char ref[24];

	switch (f->type) {
	case MARK_INT:
		value_put_u64(out, key, VALUE_INT, f->number);
		break;
	case MARK_UINT:
		value_put_u64(out, key, VALUE_UINT, f->number);
		break;
	case MARK_DOUBLE:
		value_put_u64(out, key, VALUE_DOUBLE, f->number);
		break;
	case MARK_BOOL:
		value_put(out, key, f->number ? VALUE_TRUE : VALUE_FALSE);
		break;
	case MARK_POINTER:
		value_put_u64(out, key, VALUE_POINTER, f->number);
		break;
	case MARK_STRING:
		value_put_text(out, key, f->text);
		break;
	case MARK_JSON:
		/* Text that is not valid JSON is shown as a string. */
		if (json_value_put(out, key, f->text) < 0)
			value_put_text(out, key, f->text);
		break;
	case MARK_REF:
		value_put(out, key, VALUE_DICT);
		value_put_text(out, &TEXT("id_ref"),
			       (struct text){ ref, (uint32_t)snprintf(ref, sizeof(ref),
								      "0x%" PRIx64, f->number) });
		value_put(out, NULL, VALUE_END);
		break;
	case MARK_LABEL:
		l = label_find(&d->labels, d->shared, f->number);
		value_put_text(out, key, l ? l->name : TEXT("?"));
		break;
	case MARK_ADDRESSES:
		field_put_addresses(d, f->text, key);
		break;
	default:
		value_put(out, key, VALUE_NULL);
	}
}

struct text mark_field_id(struct buf *to, const struct mark_field_value *f)
{
	buf_clear(to);
	if (f->type == MARK_STRING)
		buf_append(to, f->text.data, f->text.len);
	else
		buf_printf(to, "0x%" PRIx64, f->number);
	return (struct text){ to->data, (uint32_t)to->len };
}
