/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Binary printk: the record holds the format's address and the arguments, packed by vbin_printf()
 * of the kernel's lib/vsprintf.c.
 */
#include <string.h>

#include "print/conversion.h"
#include "print/printer.h"

struct args {
	const uint8_t *data;
	size_t len, pos;
	bool swap, ended;
};

/* 8-byte values are aligned to 4 bytes, other values to their size. */
static uint64_t bprint_next_int(struct args *a, unsigned size)
{
	size_t align = MIN(size, 4U), pos = (a->pos + align - 1) & ~(align - 1);
	uint64_t v;

	if (pos > a->len || size > a->len - pos) {
		a->ended = true;
		return 0;
	}
	v = load_uint(a->data + pos, size, a->swap);
	a->pos = pos + size;
	return v;
}

static const char *bprint_next_string(struct args *a, size_t *ret_len)
{
	const char *s = (const char *)a->data + a->pos;
	size_t room = a->len - a->pos;

	*ret_len = strnlen(s, room);
	if (*ret_len == room) {
		a->ended = true;
		return s;
	}
	a->pos += *ret_len + 1;
	return s;
}

static void bprint_put_padded(struct buf *out, const char *s, size_t len,
			      const struct int_format *f)
{
	size_t pad;

	if (f->precision >= 0)
		len = MIN(len, (size_t)f->precision);
	pad = f->width > 0 && (size_t)f->width > len ? (size_t)f->width - len : 0;
	for (size_t i = 0; i < pad && !f->left; i++)
		buf_putc(out, ' ');
	buf_append(out, s, len);
	for (size_t i = 0; i < pad && f->left; i++)
		buf_putc(out, ' ');
}

static void bprint_put_int(const struct printer *p, struct args *a, const struct conversion *spec,
			   struct buf *out)
{
	size_t room = INT_TEXT_MAX + (size_t)MAX(spec->format.width, 0) +
		      (size_t)MAX(spec->format.precision, 0);
	uint64_t v = bprint_next_int(a, spec->size);
	char *w = buf_reserve(out, room);

	if (!w || a->ended)
		return;
	v = expr_normalize(v, spec->size, spec->format.is_signed);
	if (spec->format.base == 16 && p->table->env.word_size == 8)
		v = printer_number(p, v);
	out->len += (size_t)(format_number(w, v, &spec->format) - w);
}

/*
 * The record keeps plain addresses and symbols as numbers. The kernel stored other pointers as
 * text.
 */
static void bprint_put_pointer(struct printer *p, struct args *a, const struct conversion *spec,
			       struct buf *out)
{
	char kind = spec->suffix_len ? spec->suffix[0] : 'x', text[SYMBOL_TEXT_MAX], *end = text;
	unsigned word = p->table->env.word_size;
	uint64_t v;
	size_t len;

	if (!strchr("sSxKe", kind)) {
		const char *s = bprint_next_string(a, &len);

		buf_append(out, s, len);
		return;
	}
	v = bprint_next_int(a, word);
	if (a->ended)
		return;
	if (kind == 's' || kind == 'S')
		end = print_symbol(p, text, v, kind);
	else
		end = format_hex_padded(text, printer_pointer(p, v), word * 2);
	bprint_put_padded(out, text, (size_t)(end - text), &spec->format);
}

static void bprint_put_conversion(struct printer *p, struct args *a, struct conversion *spec,
				  struct buf *out)
{
	size_t len;
	const char *s;
	char c;

	if (spec->star_width) {
		spec->format.width = (int)bprint_next_int(a, 4);
		if (spec->format.width < 0) {
			spec->format.left = true;
			spec->format.width = -MAX(spec->format.width, -4096);
		}
		spec->format.width = MIN(spec->format.width, 4096);
	}
	if (spec->star_precision)
		spec->format.precision = MIN((int)bprint_next_int(a, 4), 4096);
	switch (a->ended ? 0 : spec->kind) {
	case 'd':
		bprint_put_int(p, a, spec, out);
		break;
	case 'c':
		c = (char)bprint_next_int(a, 1);
		spec->format.precision = -1;
		if (!a->ended)
			bprint_put_padded(out, &c, 1, &spec->format);
		break;
	case 's':
		s = bprint_next_string(a, &len);
		bprint_put_padded(out, s, len, &spec->format);
		break;
	case 'p':
		bprint_put_pointer(p, a, spec, out);
		break;
	case '%':
		buf_putc(out, '%');
		break;
	default:
		break;
	}
}

int bprint_format(struct printer *p, const char *format, const uint8_t *data, size_t len,
		  struct buf *out)
{
	struct args a = { .data = data, .len = len, .swap = p->table->swap };

	while (*format && !a.ended) {
		size_t n = strcspn(format, "%");
		struct conversion spec;

		buf_append(out, format, n);
		format += n;
		if (!*format)
			break;
		format += conversion_parse(format, p->table->env.word_size, &spec);
		bprint_put_conversion(p, &a, &spec, out);
	}
	if (buf_error(out) < 0)
		return -ENOMEM;
	return a.ended ? -EBADMSG : 0;
}
