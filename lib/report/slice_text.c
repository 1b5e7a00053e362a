/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/slice_text.h"

#include <string.h>

#define DIGITS_MAX 9

/* Up to the next '|', which is skipped. */
static struct text slice_text_take(struct text *rest)
{
	const char *bar = rest->len ? memchr(rest->data, '|', rest->len) : NULL;
	struct text word = { rest->data, bar ? (uint32_t)(bar - rest->data) : rest->len };
	uint32_t taken = word.len + (bar ? 1 : 0);

	rest->data += taken;
	rest->len -= taken;
	return word;
}

static bool slice_text_number(struct text t, int32_t *ret)
{
	int32_t n = 0;

	if (!t.len || t.len > DIGITS_MAX)
		return false;
	for (uint32_t i = 0; i < t.len; i++) {
		if (t.data[i] < '0' || t.data[i] > '9')
			return false;
		n = n * 10 + (t.data[i] - '0');
	}
	*ret = n;
	return true;
}

bool slice_text_parse(struct text text, struct slice_text *ret)
{
	struct text kind;

	while (text.len && text.data[text.len - 1] == '\n')
		text.len--;
	kind = slice_text_take(&text);
	if (kind.len != 1 || !memchr("BESF", *kind.data, 4))
		return false;
	*ret = (struct slice_text){ .kind = *kind.data == 'B'	? SLICE_BEGIN
					    : *kind.data == 'E' ? SLICE_END
					    : *kind.data == 'S' ? SLICE_ASYNC_BEGIN
								: SLICE_ASYNC_END };
	if (ret->kind == SLICE_END)
		return true;
	if (!slice_text_number(slice_text_take(&text), &ret->pid))
		return false;
	/* A name may contain bars: all of the rest, or up to the last one. */
	ret->name = text;
	if (ret->kind == SLICE_BEGIN)
		return true;
	while (ret->name.len && ret->name.data[ret->name.len - 1] != '|')
		ret->name.len--;
	if (!ret->name.len)
		return false;
	ret->id = (struct text){ text.data + ret->name.len, text.len - ret->name.len };
	ret->name.len--;
	return ret->id.len > 0;
}
