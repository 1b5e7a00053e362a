/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto_read/record.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "formats/perfetto/field.h"

/* GenericFtraceEvent and its Field. */
enum { LEGACY_FIELD = 2, LEGACY_NAME = 1 };

int record_maker_init(struct record_maker *m, const struct pf_schema *schema,
		      const struct event_table *events, const struct addresses *addresses)
{
	*m = (struct record_maker){
		.schema = schema,
		.events = events,
		.addresses = addresses,
		.big_endian = schema->env.big_endian,
		.legacy_generic = schema->env.legacy_generic,
		.data = malloc(RECORD_MAX),
		.fixed = calloc(UINT16_MAX + 1, sizeof(*m->fixed)),
		.print = event_table_find_name(events, "ftrace", "print"),
	};
	m->print_ip = event_field(m->print, "ip");
	m->print_buf = event_field(m->print, "buf");
	return m->data && m->fixed ? 0 : -ENOMEM;
}

void record_maker_deinit(struct record_maker *m)
{
	free(m->data);
	free(m->fixed);
}

void record_put_number(struct record_maker *m, uint32_t offset, uint32_t size, uint64_t value)
{
	if (is_number_size(size) && offset + (uint64_t)size <= m->fixed_len)
		store(m->schema, m->data + offset, size, value);
}

void record_put_bytes(struct record_maker *m, uint32_t offset, const void *data, uint32_t len)
{
	if (len && offset + (uint64_t)len <= m->fixed_len)
		memcpy(m->data + offset, data, len);
}

/* What a __data_loc or __rel_loc says. */
static void put_location(struct record_maker *m, const struct pf_op *op, uint32_t start,
			 uint32_t len)
{
	if (op->dynamic == PF_DYNAMIC_RELATIVE)
		start -= op->offset + 4;
	record_put_number(m, op->offset, 4, (start & 0xffff) | len << 16);
}

/* Bytes of the fixed part: where data whose place is not fixed begins. */
static uint32_t fixed_part(struct record_maker *m, const struct event *desc)
{
	uint64_t end = event_table_common(m->events)->size;

	if (m->fixed[desc->id])
		return m->fixed[desc->id];
	for (size_t i = 0; i < desc->field_count; i++)
		end = MAX(end, (uint64_t)desc->fields[i].offset + desc->fields[i].size);
	m->fixed[desc->id] = (uint16_t)MIN(end, (uint64_t)RECORD_MAX / 2);
	return m->fixed[desc->id];
}

static void begin(struct record_maker *m, const struct event *desc, int32_t pid)
{
	const struct common_fields *common = event_table_common(m->events);

	m->fixed_len = m->len = fixed_part(m, desc);
	memset(m->data, 0, m->fixed_len);
	store(m->schema, m->data, 2, desc->id);
	record_put_number(m, common->pid_offset, 4, (uint32_t)pid);
}

void record_begin(struct record_maker *m, const struct pf_event *e, int32_t pid)
{
	m->e = e;
	m->repeated = NULL;
	m->printed = NULL;
	m->ip = 0;
	begin(m, e->desc, pid);
	/* What is not told of is empty, and lies somewhere. */
	for (size_t i = 0; i < e->op_count; i++)
		if (e->ops[i].dynamic == PF_DYNAMIC || e->ops[i].dynamic == PF_DYNAMIC_RELATIVE)
			put_location(m, &e->ops[i], m->fixed_len, 0);
}

/* Room for the field's bytes: where it has its place, or behind all others. NULL: none. */
static uint8_t *field_room(struct record_maker *m, const struct pf_op *op, size_t len)
{
	uint32_t start = op->dynamic == PF_DYNAMIC_TAIL ? op->offset : m->len;

	if (op->dynamic == PF_FIXED)
		return op->offset + (uint64_t)op->size <= m->fixed_len && len <= op->size
			       ? m->data + op->offset
			       : NULL;
	/* Of a tail the format may say anything. */
	if (start > m->len || start + (uint64_t)len > RECORD_MAX - 8 || len > UINT16_MAX)
		return NULL;
	if (op->dynamic != PF_DYNAMIC_TAIL)
		put_location(m, op, start, (uint32_t)len);
	m->len = start + (uint32_t)len;
	return m->data + start;
}

static bool put_field(struct record_maker *m, const struct pf_op *op, const void *data, size_t len)
{
	uint8_t *p = field_room(m, op, len);

	if (p && len)
		memcpy(p, data, len);
	return p;
}

/* With what ends it; more: NULL, or a character before that. */
static bool put_string(struct record_maker *m, const struct pf_op *op, const void *data, size_t len,
		       const char *more)
{
	size_t extra = more ? strlen(more) : 0;
	uint8_t *p;

	if (op->dynamic == PF_FIXED)
		return put_field(m, op, data, MIN(len, (size_t)op->size));
	p = field_room(m, op, len + extra + 1);
	if (!p)
		return false;
	memcpy(p, data, len);
	memcpy(p + len, more ?: "", extra);
	p[len + extra] = '\0';
	return true;
}

/* The next element of an array, whose field comes once for each. */
static bool put_element(struct record_maker *m, const struct pf_op *op, uint64_t value)
{
	uint32_t size = op->element_size, at;

	if (!is_number_size(size))
		return false;
	if (m->repeated != op) {
		m->repeated = op;
		m->repeated_count = 0;
		m->repeated_at = op->dynamic == PF_FIXED	  ? op->offset
				 : op->dynamic == PF_DYNAMIC_TAIL ? op->offset
								  : m->len;
	}
	at = m->repeated_at + m->repeated_count * size;
	if (op->dynamic == PF_FIXED && at + size > MIN(op->offset + op->size, m->fixed_len))
		return true;
	if (m->repeated_at > MAX(m->len, m->fixed_len) || at + size > RECORD_MAX - 8)
		return false;
	store(m->schema, m->data + at, size, value);
	m->repeated_count++;
	if (op->dynamic == PF_FIXED)
		return true;
	m->len = at + size;
	if (op->dynamic != PF_DYNAMIC_TAIL)
		put_location(m, op, m->repeated_at, m->repeated_count * size);
	return true;
}

/* "1,-2,3" */
static bool put_numbers(struct record_maker *m, const struct pf_op *op, const uint8_t *text,
			size_t len)
{
	const uint8_t *end = text + len;

	m->repeated = NULL;
	while (text < end) {
		bool negative = *text == '-';
		uint64_t value = 0;

		for (text += negative; text < end && *text >= '0' && *text <= '9'; text++)
			value = value * 10 + (*text - '0');
		if ((text < end && *text != ',') || !put_element(m, op, negative ? -value : value))
			return false;
		text += text < end;
	}
	return true;
}

static int hex_digit(uint8_t c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool put_hex(struct record_maker *m, const struct pf_op *op, const uint8_t *text, size_t len)
{
	uint8_t *p = field_room(m, op, len / 2);

	for (size_t i = 0; p && i + 1 < len; i += 2) {
		int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return false;
		*p++ = (uint8_t)(high << 4 | low);
	}
	return p;
}

/* As user space has it, back to the kernel's dev_t. */
static uint64_t device(uint64_t v)
{
	uint64_t major = (v >> 32 & 0xfffff000) | (v >> 8 & 0xfff);
	uint64_t minor = (v >> 12 & 0xffffff00) | (v & 0xff);

	return major << 20 | minor;
}

static bool put(struct record_maker *m, const struct pf_op *op, const struct wire_field *f)
{
	bool bytes = op->kind == PF_STRING || op->kind == PF_LINE || op->kind == PF_NUMBERS ||
		     op->kind == PF_HEX || op->kind == PF_PRINTED;

	if (bytes && f->type != WIRE_BYTES)
		return false;
	switch ((enum pf_kind)op->kind) {
	case PF_STRING:
		return put_string(m, op, f->data, f->len, NULL);
	case PF_LINE:
		return put_string(m, op, f->data, f->len, "\n");
	case PF_NUMBERS:
		return put_numbers(m, op, f->data, f->len);
	case PF_HEX:
		return put_hex(m, op, f->data, f->len);
	case PF_REPEATED:
		return f->type != WIRE_BYTES && put_element(m, op, f->value);
	case PF_PRINTED:
		m->printed = (const char *)f->data;
		m->printed_len = f->len;
		return true;
	case PF_DEVICE:
		record_put_number(m, op->offset, op->size, device(f->value));
		return true;
	case PF_UINT:
	case PF_INT:
	case PF_POINTER:
		record_put_number(m, op->offset, op->size, f->value);
		return true;
	default: /* beside the message stands more of it */
		return true;
	}
}

/* Fields mostly come in the order of the operations. */
static const struct pf_op *find_op(const struct pf_op *ops, size_t count, uint32_t number,
				   size_t *next)
{
	for (size_t n = 0; n < count; n++) {
		size_t i = (*next + n) % count;

		if (ops[i].field != number)
			continue;
		*next = i;
		return &ops[i];
	}
	return NULL;
}

static const struct pf_op *find_named(const struct record_maker *m, const struct wire_field *name)
{
	const struct event *desc = m->e->desc;

	for (size_t i = 0; i < m->e->op_count && i < desc->field_count; i++)
		if (strlen(desc->fields[i].name) == name->len &&
		    memcmp(desc->fields[i].name, name->data, name->len) == 0)
			return &m->e->ops[i];
	return NULL;
}

/* {name, value}: an operation each, in the order of the event's fields. */
static bool read_legacy_field(struct record_maker *m, const struct wire_field *message)
{
	struct wire_reader r = wire_reader_in(message);
	const struct pf_op *op = NULL;
	struct wire_field f;

	while (wire_read(&r, &f)) {
		if (f.number == LEGACY_NAME && f.type == WIRE_BYTES)
			op = find_named(m, &f);
		else if (op && !put(m, op, &f))
			return false;
	}
	return !r.bad;
}

bool record_read_message(struct record_maker *m, struct wire_reader message, bool text)
{
	const struct pf_event *e = text ? m->e->free_text : m->e;
	struct wire_field f;
	size_t next = 0;

	while (wire_read(&message, &f)) {
		const struct pf_op *op;

		if (e->field == PF_LEGACY_GENERIC) {
			if (f.number == LEGACY_FIELD && f.type == WIRE_BYTES &&
			    !read_legacy_field(m, &f))
				return false;
			continue;
		}
		op = find_op(e->ops, e->op_count, f.number, &next);
		if (op && !put(m, op, &f))
			return false;
	}
	return !message.bad;
}

static bool read_address(const struct record_maker *m, struct wire_reader *r, uint64_t *ret)
{
	uint64_t id;

	if (!wire_read_varint(r, &id))
		return false;
	if (!id)
		return wire_read_varint(r, ret);
	*ret = addresses_find(m->addresses, id);
	return true;
}

static bool read_bytes(struct wire_reader *r, const uint8_t **ret, size_t *ret_len)
{
	uint64_t len;

	if (!wire_read_varint(r, &len) || len > (size_t)(r->end - r->at))
		return false;
	*ret = r->at;
	*ret_len = (size_t)len;
	r->at += (size_t)len;
	return true;
}

static bool read_array(struct record_maker *m, const struct pf_op *op, struct wire_reader *r)
{
	uint64_t count, value;
	bool ok = true;

	if (!wire_read_varint(r, &count))
		return false;
	m->repeated = NULL;
	for (uint64_t i = 0; ok && i < count; i++) {
		ok = op->kind == PF_ADDRESSES ? read_address(m, r, &value)
					      : wire_read_varint(r, &value);
		ok = ok && put_element(m, op, value);
	}
	return ok;
}

static bool read_rest(struct record_maker *m, const struct pf_op *op, struct wire_reader *r)
{
	const uint8_t *data;
	uint64_t value;
	size_t len;

	switch ((enum pf_kind)op->kind) {
	case PF_ADDRESSES:
	case PF_REPEATED:
		return read_array(m, op, r);
	case PF_RAW:
		return read_bytes(r, &data, &len) && put_field(m, op, data, len);
	case PF_BLOCK:
		return read_bytes(r, &data, &len) && (!len || put_field(m, op, data, len));
	case PF_STRING:
		return read_bytes(r, &data, &len) && put_string(m, op, data, len, NULL);
	case PF_ADDRESS:
		if (!read_address(m, r, &value))
			return false;
		m->ip = value;
		break;
	default:
		if (!wire_read_varint(r, &value))
			return false;
	}
	record_put_number(m, op->offset, op->size, value);
	return true;
}

bool record_read_rest(struct record_maker *m, struct wire_reader *rest)
{
	for (size_t i = 0; i < m->e->rest_count; i++)
		if (!read_rest(m, &m->e->rest[i], rest)) {
			rest->bad = true;
			return false;
		}
	return true;
}

/*
 * What trace_printk() was given is known as the kernel prints it, "function: text": a print of the
 * same function and text prints the same.
 */
static void make_print(struct record_maker *m)
{
	const char *colon = memmem(m->printed, m->printed_len, ": ", 2);
	const struct common_fields *common = event_table_common(m->events);
	struct pf_op op = { .dynamic = PF_DYNAMIC_TAIL };
	int32_t pid;

	if (!m->print_ip || !m->print_buf)
		return;
	pid = (int32_t)load_u32(m->data + common->pid_offset, m->big_endian);
	if (colon) {
		m->printed_len -= (size_t)(colon + 2 - m->printed);
		m->printed = colon + 2;
	}
	begin(m, m->print, pid);
	record_put_number(m, m->print_ip->offset, m->print_ip->size, m->ip);
	op.offset = m->print_buf->offset;
	put_string(m, &op, m->printed, m->printed_len, "\n");
}

void record_end(struct record_maker *m, uint16_t flags)
{
	const struct common_fields *common = event_table_common(m->events);

	if (m->printed)
		make_print(m);
	m->data[common->flags_offset] = (uint8_t)flags;
	m->data[common->preempt_offset] = (uint8_t)(flags >> 8);
}
