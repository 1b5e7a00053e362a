/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/html/html.h"

#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/json.h"
#include "base/plain.h"
#include "base/utf8.h"

/* NULL: out of memory. */
static const char *html_page(void)
{
	static bool is_unpacked;
	uLongf len = html_page_len;

	if (!is_unpacked)
		is_unpacked = uncompress((Bytef *)html_page_space, &len, html_page_packed,
					 html_page_packed_len) == Z_OK;
	return is_unpacked ? html_page_space : NULL;
}

void html_put_page(struct buf *out)
{
	const char *page = html_page();

	if (page)
		buf_append(out, page, html_page_len);
	else
		out->failed = true;
}

bool html_is_head(const char *data, size_t len)
{
	size_t in_page = MIN(len, html_page_len);
	const char *page = html_page();

	return page && len < html_page_len + strlen(HTML_TEXT_BEGIN) &&
	       memcmp(data, page, in_page) == 0 &&
	       memcmp(data + in_page, HTML_TEXT_BEGIN, len - in_page) == 0;
}

/* Whether p, after "<" and backslashes, is something that a browser acts on within a script. */
static bool html_is_markup(const char *p, const char *end)
{
	static const char *const words[] = { "/script", "script", "!--" };

	while (p < end && *p == '\\')
		p++;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if ((size_t)(end - p) >= strlen(words[i]) &&
		    strncasecmp(p, words[i], strlen(words[i])) == 0)
			return true;
	return false;
}

static const char *html_find_markup(const char *p, const char *end)
{
	for (; (p = memchr(p, '<', (size_t)(end - p))); p++)
		if (unlikely(html_is_markup(p + 1, end)))
			return p;
	return NULL;
}

/* Like plain_end(), but quotes and backslashes are plain. */
static const char *line_plain_end(const char *p, const char *end)
{
	while ((p = plain_end(p, end)) < end && (*p == '"' || *p == '\\' || *p == '\t'))
		p++;
	return p;
}

static void html_put_line(struct buf *out, const char *p, size_t len, uint64_t *units)
{
	const char *end = p + len;

	while (p < end) {
		unsigned char c = (unsigned char)*p;
		size_t n = utf8_length((const unsigned char *)p, (size_t)(end - p));

		if (c == '\n') {
			buf_putc(out, ' ');
		} else if ((c < ' ' && c != '\t') || c == 0x7f) {
			buf_printf(out, "\\x%02x", c);
			*units += 3;
		} else if (!n) {
			buf_puts(out, UTF8_REPLACEMENT);
		} else {
			buf_append(out, p, n);
			*units += n == 4;
			if (c == '<' && html_is_markup(p + 1, end)) {
				buf_putc(out, '\\');
				++*units;
			}
		}
		++*units;
		p += n ?: 1;
	}
}

_hot_ int html_end_line(struct buf *out, size_t start, struct buf *scratch, uint64_t *units)
{
	const char *p, *end;

	if (unlikely(out->failed))
		return -ENOMEM;
	p = out->data + start;
	end = out->data + out->len;
	if (likely(line_plain_end(p, end) == end && !html_find_markup(p, end))) {
		*units += out->len - start;
	} else {
		buf_clear(scratch);
		buf_append(scratch, p, (size_t)(end - p));
		out->len = start;
		if (buf_error(scratch) == 0)
			html_put_line(out, scratch->data, scratch->len, units);
	}
	buf_putc(out, '\n');
	++*units;
	return buf_error(scratch);
}

void html_hide_markup(struct buf *b, size_t *since _unused_)
{
	static const char spelled[] = "\\u003c";
	const size_t len = sizeof(spelled) - 1;
	size_t at = b->len, found = 0, to;

	for (size_t i = 0; i < at && !b->failed; i++)
		found += b->data[i] == '<';
	if (!found || !buf_reserve(b, found * (len - 1)))
		return;
	b->len = to = at + found * (len - 1);
	/* Move from the end, so that nothing is overwritten. */
	while (at < to) {
		if (b->data[--at] != '<') {
			b->data[--to] = b->data[at];
			continue;
		}
		to -= len;
		memcpy(b->data + to, spelled, len);
	}
}

/* Puts `next` behind the first line end that is far enough from the last one. */
static void html_divide(struct buf *b, size_t *since, const char *next)
{
	const size_t len = strlen(next);
	size_t at = 0;

	while (!b->failed && *since + b->len - at > HTML_ELEMENT_BYTES) {
		size_t from = at + (*since < HTML_ELEMENT_BYTES ? HTML_ELEMENT_BYTES - *since : 0);
		const char *end = memchr(b->data + from, '\n', b->len - from);

		if (!end)
			break;
		at = (size_t)(end - b->data) + 1;
		buf_replace(b, at, 0, next, len);
		at += len;
		*since = 0;
	}
	*since += b->len - at;
}

void html_divide_text(struct buf *b, size_t *since)
{
	html_divide(b, since, HTML_TEXT_NEXT);
}

void html_divide_more(struct buf *b, size_t *since)
{
	html_hide_markup(b, since);
	html_divide(b, since, HTML_MORE_NEXT);
}
