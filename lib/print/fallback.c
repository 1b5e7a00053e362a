/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints an event without a program field by field, as the kernel does with options/fields. Its
 * print fmt calls functions of the kernel, or is damaged.
 */
#include <string.h>

#include "print/printer.h"

static bool fallback_holds_fields(const struct event *ev, const struct record *rec)
{
	for (size_t i = 0; i < ev->field_count; i++)
		if (ev->fields[i].size > rec->len ||
		    ev->fields[i].offset > rec->len - ev->fields[i].size)
			return false;
	return true;
}

static void fallback_put_bytes(const struct record *rec, uint64_t at, uint64_t len, bool is_text,
			       struct buf *out)
{
	if (at > rec->len || len > rec->len - at) {
		buf_puts(out, "[truncated]");
	} else if (is_text) {
		buf_append(out, rec->data + at, strnlen((const char *)rec->data + at, (size_t)len));
	} else {
		for (uint64_t i = 0; i < len; i++)
			buf_printf(out, "%s%02x", i ? "," : "", rec->data[at + i]);
	}
}

static void fallback_put_fields(const struct printer *p, const struct event *ev,
				const struct record *rec, struct buf *out)
{
	for (size_t i = 0; i < ev->field_count; i++) {
		const struct field *f = &ev->fields[i];
		uint64_t v;

		buf_printf(out, " %s=", f->name);
		if (f->is_array || !record_read_uint(p->table, rec, f->offset, f->size, &v))
			fallback_put_bytes(rec, f->offset, f->size, f->is_string, out);
		else if (f->is_dynamic || f->is_relative)
			fallback_put_bytes(
				rec, (v & 0xffff) + (f->is_relative ? f->offset + f->size : 0),
				v >> 16 & 0xffff, f->is_string, out);
		else if (f->is_pointer || (f->size == 8 && !f->is_signed && number_is_address(v)))
			buf_printf(out, "0x%llx", (unsigned long long)printer_pointer(p, v));
		else
			buf_printf(out, "0x%llx (%lld)", (unsigned long long)v,
				   (long long)expr_normalize(v, f->size, f->is_signed));
	}
}

int fallback_print(struct printer *p, const struct event *ev, const struct record *rec,
		   struct buf *out)
{
	p->fallbacks++;
	buf_puts(out, ev->name);
	buf_putc(out, ':');
	fallback_put_fields(p, ev, rec, out);
	if (buf_error(out) < 0)
		return -ENOMEM;
	return fallback_holds_fields(ev, rec) ? 0 : -EBADMSG;
}
