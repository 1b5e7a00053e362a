/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "event_fields.h"

#include <string.h>

#include "base/visible.h"
#include "daemon/capture/tracefs/event_field.h"

#define COMMON "common_"
#define COLUMN_MAX ((size_t)40)

static bool event_fields_is_common(const struct event_field *f)
{
	return f->name_len >= strlen(COMMON) && memcmp(f->name, COMMON, strlen(COMMON)) == 0;
}

static void event_fields_put_operators(enum event_field_filter filter, struct buf *out)
{
	const char *const *operators = event_field_operators(filter);

	if (!*operators)
		buf_puts(out, "-");
	for (size_t i = 0; operators[i]; i++)
		buf_printf(out, "%s%s", i ? " " : "", operators[i]);
	if (filter == EVENT_FILTER_CPUS)
		buf_puts(out, " CPUS{0-3}");
}

struct field_widths {
	int name, type;
};

static void event_fields_widen(struct field_widths *w, size_t name, size_t type)
{
	w->name = MAX(w->name, (int)MIN(name, COLUMN_MAX));
	w->type = MAX(w->type, (int)MIN(type, COLUMN_MAX));
}

/* Only the common fields, or only the others. */
static struct field_widths event_fields_measure(const char *format, bool common)
{
	struct field_widths w = { 0, 0 };
	struct event_field f;

	for (const char *at = format; event_field_describe(&at, &f);)
		if (event_fields_is_common(&f) == common)
			event_fields_widen(&w, f.name_len, f.type_len + f.array_len);
	return w;
}

static void event_fields_put_all(const char *format, bool common, const struct field_widths *w,
				 struct buf *out)
{
	struct event_field f;

	for (const char *at = format; event_field_describe(&at, &f);) {
		int type = (int)(f.type_len + f.array_len);

		if (event_fields_is_common(&f) != common)
			continue;
		buf_printf(out, "  %-*.*s  %.*s%.*s%*s  ", w->name, (int)f.name_len, f.name,
			   (int)f.type_len, f.type, (int)f.array_len, f.array,
			   MAX(w->type - type, 0), "");
		event_fields_put_operators(f.filter, out);
		if (f.filter != EVENT_FILTER_NONE && !common &&
		    event_field_judge(format, f.name, f.name_len) != EVENT_FIELD_OPEN)
			buf_puts(out, "  root only");
		buf_putc(out, '\n');
	}
}

void event_fields_put(const char *event, const char *format, struct buf *out)
{
	struct field_widths w = event_fields_measure(format, false);

	buf_visible(out, event, VISIBLE_MAX);
	buf_putc(out, '\n');
	event_fields_put_all(format, false, &w, out);
}

void event_fields_put_common(const char *format, struct buf *out)
{
	struct field_widths w = event_fields_measure(format, true);

	buf_puts(out, "every event\n");
	event_fields_put_all(format, true, &w, out);
	/* trace_define_generic_fields() */
	buf_printf(out, "  %-*s  %-*s  == != < <= > >= &\n", w.name, "cpu", w.type, "int");
	buf_printf(out, "  %-*s  %-*s  == != ~\n", w.name, "comm", w.type, "char *");
}

static void event_fields_put_text(struct document *j, const char *key, const char *a, size_t a_len,
				  const char *b, size_t b_len)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	buf_printf(&text, "%.*s%.*s", (int)a_len, a, (int)b_len, b);
	document_string(j, key, buf_string(&text) ?: "");
}

void event_fields_put_json(const char *event, const char *format, struct document *j)
{
	struct event_field f;

	document_open(j, NULL, '{');
	document_string(j, "event", event);
	document_open(j, "fields", '[');
	for (const char *at = format; event_field_describe(&at, &f);) {
		const char *const *operators = event_field_operators(f.filter);

		document_open(j, NULL, '{');
		event_fields_put_text(j, "name", f.name, f.name_len, "", 0);
		event_fields_put_text(j, "type", f.type, f.type_len, f.array, f.array_len);
		document_uint(j, "bytes", f.size);
		document_bool(j, "signed", f.is_signed);
		document_open(j, "operators", '[');
		for (size_t i = 0; operators[i]; i++)
			document_string(j, NULL, operators[i]);
		document_close(j, ']');
		document_bool(j, "root_only",
			      event_field_judge(format, f.name, f.name_len) != EVENT_FIELD_OPEN);
		document_close(j, '}');
	}
	document_close(j, ']');
	document_close(j, '}');
}
