/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "document.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"

static void document_begin(struct document *d, const char *key)
{
	if (!d->empty)
		buf_putc(d->out, ',');
	if (d->depth) {
		buf_putc(d->out, '\n');
		for (unsigned i = 0; i < d->depth; i++)
			buf_puts(d->out, "  ");
	}
	d->empty = false;
	if (key) {
		json_put_string(d->out, key);
		buf_puts(d->out, ": ");
	}
}

void document_open(struct document *d, const char *key, char open)
{
	document_begin(d, key);
	buf_putc(d->out, open);
	d->depth++;
	d->empty = true;
}

void document_close(struct document *d, char close)
{
	d->depth--;
	if (!d->empty) {
		buf_putc(d->out, '\n');
		for (unsigned i = 0; i < d->depth; i++)
			buf_puts(d->out, "  ");
	}
	buf_putc(d->out, close);
	d->empty = false;
}

void document_string(struct document *d, const char *key, const char *value)
{
	document_begin(d, key);
	json_put_string(d->out, value);
}

void document_uint(struct document *d, const char *key, uint64_t value)
{
	document_begin(d, key);
	buf_printf(d->out, "%" PRIu64, value);
}

void document_bool(struct document *d, const char *key, bool value)
{
	document_begin(d, key);
	buf_puts(d->out, value ? "true" : "false");
}

int document_print(struct document *d)
{
	int r;

	buf_putc(d->out, '\n');
	r = buf_error(d->out);
	if (r < 0)
		return r;
	return fwrite(d->out->data, 1, d->out->len, stdout) == d->out->len ? 0 : -errno;
}
