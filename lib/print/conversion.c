/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/conversion.h"

#include "base/cleanup.h"

#define WIDTH_MAX 8192 /* no kernel line is longer */

static bool conversion_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool conversion_is_alnum(char c)
{
	return conversion_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static const char *conversion_parse_flags(const char *p, struct int_format *f)
{
	for (;; p++) {
		switch (*p) {
		case '-':
			f->left = true;
			break;
		case '+':
			f->plus = true;
			break;
		case ' ':
			f->space = true;
			break;
		case '#':
			f->special = true;
			break;
		case '0':
			f->zero = true;
			break;
		default:
			return p;
		}
	}
}

static const char *conversion_parse_number(const char *p, int *ret)
{
	int v = 0;

	for (; conversion_is_digit(*p); p++)
		v = MIN(v * 10 + (*p - '0'), WIDTH_MAX);
	*ret = v;
	return p;
}

static const char *conversion_parse_size(const char *p, unsigned word_size, uint8_t *ret)
{
	switch (*p) {
	case 'h':
		*ret = p[1] == 'h' ? 1 : 2;
		return p + (p[1] == 'h' ? 2 : 1);
	case 'l':
		*ret = p[1] == 'l' ? 8 : (uint8_t)word_size;
		return p + (p[1] == 'l' ? 2 : 1);
	case 'L':
		*ret = 8;
		return p + 1;
	case 'z':
	case 'Z':
	case 't':
		*ret = (uint8_t)word_size;
		return p + 1;
	default:
		*ret = 4;
		return p;
	}
}

static const char *conversion_parse_kind(const char *p, struct conversion *ret)
{
	switch (*p) {
	case 'd':
	case 'i':
		ret->format.is_signed = true;
		ret->format.base = 10;
		break;
	case 'u':
		ret->format.base = 10;
		break;
	case 'X':
		ret->format.upper = true;
		ret->format.base = 16;
		break;
	case 'x':
		ret->format.base = 16;
		break;
	case 'o':
		ret->format.base = 8;
		break;
	case 'c':
	case 's':
	case '%':
		ret->kind = *p;
		return p + 1;
	case 'p':
		ret->kind = 'p';
		ret->suffix = ++p;
		while (conversion_is_alnum(*p))
			p++;
		ret->suffix_len = (size_t)(p - ret->suffix);
		return p;
	default:
		return p;
	}
	ret->kind = 'd';
	return p + 1;
}

size_t conversion_parse(const char *text, unsigned word_size, struct conversion *ret)
{
	const char *p = text + 1;

	*ret = (struct conversion){ .format = { .width = -1, .precision = -1 } };
	p = conversion_parse_flags(p, &ret->format);
	if (*p == '*') {
		ret->star_width = true;
		p++;
	} else if (conversion_is_digit(*p)) {
		p = conversion_parse_number(p, &ret->format.width);
	}
	if (*p == '.') {
		p++;
		if (*p == '*') {
			ret->star_precision = true;
			p++;
		} else {
			p = conversion_parse_number(p, &ret->format.precision);
		}
	}
	p = conversion_parse_size(p, word_size, &ret->size);
	p = conversion_parse_kind(p, ret);
	return (size_t)(p - text);
}
