/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/formats.h"

#include <errno.h>
#include <stdlib.h>

#define FORMATS_MAX 16384
#define REST_FIELDS_MAX 256

/* A traced.origin.Format. */
struct told_format {
	uint32_t field, text_field;
	uint16_t id;
	struct pf_op *rest; /* owned */
	size_t rest_count;
};

int formats_init(struct formats *f, struct event_table *table, struct stream_writer *w)
{
	*f = (struct formats){
		.table = table,
		.w = w,
		.all = calloc(FORMATS_MAX, sizeof(*f->all)),
		.generic = calloc(UINT16_MAX + 1, sizeof(*f->generic)),
	};
	return f->all && f->generic ? 0 : -ENOMEM;
}

void formats_deinit(struct formats *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->all[i].rest);
	free(f->all);
	free(f->generic);
	buf_deinit(&f->scratch);
}

/* Takes format's rest over where it takes the format. */
static int add(struct formats *f, const struct wire_field *system, const struct wire_field *text,
	       struct told_format *format)
{
	const struct event *const *all;
	size_t before, after;
	int r;

	event_table_all(f->table, &before);
	buf_clear(&f->scratch);
	buf_append(&f->scratch, system->data, system->len);
	buf_putc(&f->scratch, '\0');
	buf_append(&f->scratch, text->data, text->len);
	if (buf_error(&f->scratch) < 0)
		return -ENOMEM;
	if (bounds_take(&f->bounds, CHUNK_FORMAT, f->scratch.len) < 0 || f->count == FORMATS_MAX)
		return -EBADMSG;
	r = event_table_add(f->table, f->scratch.data, f->scratch.data + system->len + 1, text->len,
			    NULL);
	all = event_table_all(f->table, &after);
	if (r < 0 || after == before)
		return r;
	format->id = all[after - 1]->id;
	f->generic[format->id] =
		format->field >= PF_GENERIC_BASE || format->field == PF_LEGACY_GENERIC;
	f->all[f->count++] = *format;
	format->rest = NULL;
	return stream_write(f->w, CHUNK_FORMAT, f->scratch.data, f->scratch.len);
}

/* What pf_rest_write wrote of the event, as the file tells. */
static int read_layout(const struct wire_field *rest, struct told_format *format)
{
	static const uint8_t kinds[] = {
		[REST_NUMBER] = PF_UINT,	 [REST_ADDRESS] = PF_ADDRESS,
		[REST_ADDRESSES] = PF_ADDRESSES, [REST_NUMBERS] = PF_REPEATED,
		[REST_BYTES] = PF_RAW,		 [REST_BLOCK] = PF_BLOCK,
		[REST_STRING] = PF_STRING,
	};
	struct wire_reader r = wire_reader_in(rest);

	while (r.at < r.end) {
		uint64_t n[5] = { 0 };
		struct pf_op *bigger;

		for (size_t i = 0; i < ARRAY_SIZE(n); i++)
			if (!wire_read_varint(&r, &n[i]) || n[i] > RECORD_MAX)
				return -EBADMSG;
		if (!n[0] || n[0] >= ARRAY_SIZE(kinds) || n[1] > PF_DYNAMIC_TAIL ||
		    format->rest_count == REST_FIELDS_MAX)
			return -EBADMSG;
		bigger = reallocarray(format->rest, format->rest_count + 1, sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		format->rest = bigger;
		format->rest[format->rest_count++] = (struct pf_op){
			.kind = kinds[n[0]],
			.dynamic = (uint8_t)n[1],
			.offset = (uint32_t)n[2],
			.size = (uint32_t)n[3],
			.element_size = (uint32_t)n[4],
		};
	}
	return 0;
}

int formats_take(struct formats *f, const struct wire_field *message)
{
	struct wire_reader r = wire_reader_in(message);
	struct wire_field field, system = { 0 }, text = { 0 }, rest = { 0 };
	struct told_format format = { 0 };
	int e;

	while (wire_read(&r, &field)) {
		switch (field.number) {
		case FORMAT_FIELD:
			format.field = (uint32_t)field.value;
			break;
		case FORMAT_TEXT_FIELD:
			format.text_field = (uint32_t)field.value;
			break;
		case FORMAT_SYSTEM:
			system = field;
			break;
		case FORMAT_TEXT:
			text = field;
			break;
		case FORMAT_REST:
			rest = field;
			break;
		}
	}
	if (r.bad || system.type != WIRE_BYTES || text.type != WIRE_BYTES || !text.len ||
	    memchr(system.data, 0, system.len))
		return -EBADMSG;
	e = read_layout(&rest, &format);
	if (e == 0)
		e = add(f, &system, &text, &format);
	free(format.rest);
	return e;
}

static int by_field(const void *a, const void *b)
{
	return bundle_event_order(a, b);
}

int formats_number(struct formats *f, const struct pf_schema *schema, struct bundle_event **ret,
		   size_t *ret_count, uint64_t *ret_unknown)
{
	struct bundle_event *events = calloc(f->count * 2 + 1, sizeof(*events));
	size_t count = 0;

	if (!events)
		return -ENOMEM;
	for (size_t i = 0; i < f->count; i++) {
		struct told_format *t = &f->all[i];
		struct pf_event *e = schema->events[t->id];

		if (!e || (!f->generic[t->id] && e->field != t->field)) {
			++*ret_unknown;
			continue;
		}
		free(e->rest);
		e->rest = TAKE_PTR(t->rest);
		e->rest_count = t->rest_count;
		events[count++] = (struct bundle_event){ .field = t->field, .e = e };
		if (t->text_field && e->free_text)
			events[count++] = (struct bundle_event){ .field = t->text_field,
								 .e = e,
								 .text = true };
	}
	qsort(events, count, sizeof(*events), by_field);
	*ret = events;
	*ret_count = count;
	return 0;
}
