/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/rest.h"

#include "formats/perfetto/addresses.h"
#include "formats/perfetto/field.h"
#include "formats/perfetto/message.h"
#include "formats/perfetto/wire.h"

#define MARK_SYNC "trace_event_clock_sync:"

static const struct pf_op *op_at(const struct pf_event *e, uint32_t offset)
{
	for (size_t i = 0; i < e->op_count; i++)
		if (e->ops[i].kind != PF_PRINTED && e->ops[i].offset == offset)
			return &e->ops[i];
	return NULL;
}

static bool rest_is_printed(const struct pf_event *e)
{
	for (size_t i = 0; i < e->op_count; i++)
		if (e->ops[i].kind == PF_PRINTED)
			return true;
	return false;
}

/* Fields that the text prints as symbols, unknown to event_symbol_kind(). */
static char rest_other_lookup(const struct event *desc, const char *field)
{
	if (desc->funcgraph && (!strcmp(field, "func") || !strcmp(field, "retaddr")))
		return LOOKUP_SYMBOL;
	if (!strcmp(desc->system, "ftrace") && !strcmp(desc->name, "print") && !strcmp(field, "ip"))
		return LOOKUP_PRINT;
	return 0;
}

/* How the kernel's text looks up the field's address: as a symbol or a string. */
static char rest_lookup_of(const struct event *desc, const struct field *f, const struct pf_op *op)
{
	char symbol = event_symbol_kind(desc, f);

	if (f->is_array || f->is_dynamic || !is_number_size(f->size) || f->size < 4 ||
	    pf_event_is_syscall(desc))
		return 0;
	if (symbol)
		return symbol == 'B' ? LOOKUP_BEFORE : LOOKUP_SYMBOL;
	if (op && op->kind == PF_FUNCTION)
		return LOOKUP_SYMBOL;
	return f->is_pointer && strstr(f->type, "char") ? LOOKUP_TEXT
							: rest_other_lookup(desc, f->name);
}

/* Arguments of system calls may point to strings. */
static bool rest_is_block(const struct event *desc, const struct field *f)
{
	return f->is_dynamic && f->element_size == 1 && !strcmp(desc->system, "syscalls");
}

static bool rest_compile_field(const struct pf_event *e, const struct field *f, struct pf_op *ret)
{
	const struct pf_op *op = op_at(e, f->offset);
	char lookup = rest_lookup_of(e->desc, f, op);

	*ret = pf_op_for(e->desc, f);
	if (lookup) {
		ret->kind = PF_ADDRESS;
		ret->symbol = lookup;
		return true;
	}
	if (ret->kind == PF_STACK)
		ret->kind = PF_ADDRESSES;
	else if (ret->kind == PF_MASK)
		ret->kind = PF_RAW;
	else if (rest_is_block(e->desc, f))
		ret->kind = PF_BLOCK;
	else if (op && !(op->narrow && f->size == 8))
		return false;
	else if (ret->kind == PF_NUMBERS)
		ret->kind = PF_REPEATED;
	else if (ret->kind == PF_HEX)
		ret->kind = PF_RAW;
	else if (ret->kind == PF_SYMBOL)
		ret->kind = PF_UINT;
	return true;
}

static size_t rest_bound(const struct pf_op *op)
{
	return 2 * WIRE_VARINT_MAX + (size_t)WIRE_VARINT_MAX * op->size;
}

int pf_rest_compile(struct pf_event *e)
{
	bool printed = rest_is_printed(e);

	e->rest = calloc(e->desc->field_count + 1, sizeof(*e->rest));
	if (!e->rest)
		return -ENOMEM;
	for (size_t i = 0; i < e->desc->field_count; i++) {
		const struct field *f = &e->desc->fields[i];
		struct pf_op *op = &e->rest[e->rest_count];

		/* An event written as its text needs nothing else. */
		if ((printed && strcmp(f->name, "ip") != 0) || !rest_compile_field(e, f, op))
			continue;
		e->rest_bound += rest_bound(op);
		e->rest_factor += op->dynamic != PF_FIXED ? WIRE_VARINT_MAX : 0;
		e->rest_count++;
	}
	e->aside = true;
	return 0;
}

static char rest_lookup_print(struct pf_schema *s, uint64_t ip, const struct record *rec)
{
	if (!s->mark_ip && memmem(rec->data, rec->len, MARK_SYNC, strlen(MARK_SYNC)))
		s->mark_ip = ip;
	return ip == s->mark_ip ? LOOKUP_PRINT : LOOKUP_SYMBOL;
}

/* The address as the text shows it without a symbol. */
static uint64_t rest_shown_address(const struct pf_schema *s, uint64_t address)
{
	bool kernel = s->env.word_size == 8 ? (int64_t)address < 0 : (int32_t)address < 0;

	return kernel ? printer_pointer(s->printer, address) : address;
}

static uint8_t *rest_put_address(struct pf_schema *s, uint8_t *p, uint64_t address, char kind)
{
	uint64_t id = address ? pf_address(s, address, kind) : 0;

	p = wire_varint(p, id);
	return id ? p : wire_varint(p, rest_shown_address(s, address));
}

static uint8_t *rest_put_addresses(struct pf_schema *s, uint8_t *p, struct span at, uint32_t word)
{
	p = wire_varint(p, at.len / word);
	for (uint32_t i = 0; i + word <= at.len; i += word)
		p = rest_put_address(s, p, field_load_number(s, at.data + i, word, false),
				     LOOKUP_SYMBOL);
	return p;
}

static uint8_t *rest_put_bytes(uint8_t *p, const void *data, size_t len)
{
	p = wire_varint(p, len);
	memcpy(p, data, len);
	return p + len;
}

static uint8_t *rest_put_numbers(const struct pf_schema *s, const struct pf_op *op, uint8_t *p,
				 struct span at)
{
	uint32_t size = op->element_size;

	p = wire_varint(p, at.len / size);
	for (uint32_t i = 0; i + size <= at.len; i += size)
		p = wire_varint(
			p, field_hide_number(
				   s, op, field_load_number(s, at.data + i, size, op->is_signed)));
	return p;
}

/* Empty if the message has everything: a string with its NUL. */
static uint8_t *rest_put_block(uint8_t *p, struct span at)
{
	bool string = at.len && strnlen((const char *)at.data, at.len) == at.len - 1;

	return rest_put_bytes(p, at.data, string ? 0 : at.len);
}

static uint8_t *rest_put(struct pf_schema *s, const struct pf_op *op, uint8_t *p, struct span at,
			 const struct record *rec)
{
	uint64_t value;

	switch ((enum pf_kind)op->kind) {
	case PF_ADDRESSES:
		return rest_put_addresses(s, p, at, op->element_size);
	case PF_REPEATED:
		return rest_put_numbers(s, op, p, at);
	case PF_RAW:
		return rest_put_bytes(p, at.data, at.len);
	case PF_BLOCK:
		return rest_put_block(p, at);
	case PF_STRING:
		return rest_put_bytes(p, at.data, strnlen((const char *)at.data, at.len));
	default:
		break;
	}
	value = field_load_number(s, at.data, op->size, op->is_signed);
	if (op->kind == PF_ADDRESS)
		return rest_put_address(
			s, p, value,
			op->symbol == LOOKUP_PRINT ? rest_lookup_print(s, value, rec) : op->symbol);
	if (op->kind == PF_POINTER)
		return wire_varint(p, printer_pointer(s->printer, value));
	return wire_varint(p, field_hide_number(s, op, value));
}

int pf_rest_write(struct pf_schema *s, const struct pf_event *e, const struct trace_event *ev,
		  struct buf *out)
{
	uint8_t *start = (uint8_t *)buf_reserve(out, e->rest_bound + e->rest_factor * ev->rec.len),
		*p = start;

	if (!start)
		return -ENOMEM;
	for (size_t i = 0; i < e->rest_count; i++) {
		const struct pf_op *op = &e->rest[i];
		struct span at;

		if (likely(field_locate(s, op, &ev->rec, &at)))
			p = rest_put(s, op, p, at, &ev->rec);
		else if (op->kind == PF_ADDRESS)
			p = wire_varint(wire_varint(p, 0), 0);
		else
			p = wire_varint(p, 0);
	}
	out->len += (size_t)(p - start);
	return buf_error(&s->new_addresses);
}

/* The kind of a rest (REST_) of an enum pf_kind. */
static unsigned rest_code(unsigned kind)
{
	switch (kind) {
	case PF_ADDRESS:
		return REST_ADDRESS;
	case PF_ADDRESSES:
		return REST_ADDRESSES;
	case PF_REPEATED:
		return REST_NUMBERS;
	case PF_RAW:
		return REST_BYTES;
	case PF_BLOCK:
		return REST_BLOCK;
	case PF_STRING:
		return REST_STRING;
	default:
		return REST_NUMBER;
	}
}

static void rest_put_layout(const struct pf_event *e, struct buf *out)
{
	size_t content = pf_open(out, FORMAT_REST);

	for (size_t i = 0; i < e->rest_count; i++) {
		const struct pf_op *op = &e->rest[i];
		const uint64_t numbers[] = { rest_code(op->kind), op->dynamic, op->offset, op->size,
					     op->element_size };
		uint8_t *start = (uint8_t *)buf_reserve(out, ARRAY_SIZE(numbers) * WIRE_VARINT_MAX),
			*p = start;

		for (size_t n = 0; start && n < ARRAY_SIZE(numbers); n++)
			p = wire_varint(p, numbers[n]);
		out->len += (size_t)(p - start);
	}
	pf_close(out, content);
}

static int rest_put_format(struct pf_schema *s, struct pf_event *e)
{
	size_t len, content = pf_open(&s->new_formats, BUNDLE_FORMATS);
	const char *text = event_format_text(e->desc, &len);

	pf_uint(&s->new_formats, FORMAT_FIELD, e->field);
	if (e->free_text)
		pf_uint(&s->new_formats, FORMAT_TEXT_FIELD, e->free_text->field);
	pf_bytes(&s->new_formats, FORMAT_SYSTEM, e->desc->system, strlen(e->desc->system));
	pf_bytes(&s->new_formats, FORMAT_TEXT, text, len);
	if (e->rest_count)
		rest_put_layout(e, &s->new_formats);
	pf_close(&s->new_formats, content);
	e->announced = true;
	e->aside = e->rest_count > 0;
	return buf_error(&s->new_formats);
}

int pf_put_format(struct pf_schema *s, struct pf_event *e)
{
	const struct event *print;

	if (e->announced)
		return 0;
	/* The file describes trace_printk() as a print of the same text. */
	print = rest_is_printed(e) ? event_table_find_name(s->env.table, "ftrace", "print") : NULL;
	if (print && s->events[print->id]) {
		int r = pf_put_format(s, s->events[print->id]);

		if (r < 0)
			return r;
	}
	return rest_put_format(s, e);
}
