/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Hot path: converts a record to the wire bytes of a FtraceEvent. */
#include "base/secret_hash.h"
#include "base/swar.h"
#include "base/utf8.h"
#include "formats/perfetto/field.h"
#include "formats/perfetto/numbers.h"
#include "formats/perfetto/wire.h"

static uint64_t device_number(uint64_t dev)
{
	uint64_t major = dev >> 20, minor = dev & 0xfffff;

	return (major & 0xfffff000) << 32 | (major & 0xfff) << 8 | (minor & 0xffffff00) << 12 |
	       (minor & 0xff);
}

static size_t address_slot(uint64_t address)
{
	return (size_t)hash_number(address);
}

DEFINE_TABLE(pf_functions, struct pf_function, uint64_t, slot->iid != 0,
	     address_slot(slot->address), slot->address == key);

/* Writes the name as an InternedString in InternedData.kernel_symbols (26). */
static void function_put_name(struct pf_schema *s, uint64_t iid, const char *name)
{
	size_t len = strlen(name);
	uint8_t *start = (uint8_t *)buf_reserve(&s->new_symbols, len + 64), *content, *p;

	if (!start)
		return;
	content = p = wire_open(start, 26);
	p = wire_uint(p, 1, iid);
	p = wire_bytes(p, 2, name, len);
	s->new_symbols.len += (size_t)(wire_close(content, p) - start);
}

/* Interned id of the function at address; 0: no symbol. */
static uint64_t intern_function(struct pf_schema *s, uint64_t address)
{
	struct pf_function *f = pf_functions_place(&s->functions, address_slot(address), address);
	struct symbol symbol;

	if (!f)
		return 0;
	if (f->iid)
		return f->iid;
	if (!event_table_find_symbol(s->env.table, address, &symbol))
		return 0;
	*f = (struct pf_function){ .address = address, .iid = ++s->functions.count };
	function_put_name(s, f->iid, symbol.name);
	return f->iid;
}

/* The kernel's strings may be invalid UTF-8, which protobuf forbids. */
static uint8_t *field_put_string(uint8_t *p, uint32_t field, const char *text, size_t len)
{
	uint8_t *content;

	if (likely(utf8_is_ascii(text, len)))
		return wire_bytes(p, field, text, len);
	content = wire_open(p, field);
	return wire_close(content, (uint8_t *)utf8_clean((char *)content, text, len));
}

static uint8_t *field_put_line(const struct pf_op *op, uint8_t *p, struct span at)
{
	size_t len = strnlen((const char *)at.data, at.len);

	while (len && at.data[len - 1] == '\n')
		len--;
	return field_put_string(p, op->field, (const char *)at.data, len);
}

static uint8_t *field_put_numbers(const struct pf_schema *s, const struct pf_op *op, uint8_t *p,
				  struct span at)
{
	uint8_t *content = wire_open(p, op->field);

	p = content;
	for (uint32_t i = 0; i + op->element_size <= at.len; i += op->element_size) {
		uint64_t v = field_hide_number(
			s, op, field_load_number(s, at.data + i, op->element_size, op->is_signed));

		p += snprintf((char *)p, PF_NUMBER_MAX, op->is_signed ? "%s%lld" : "%s%llu",
			      i ? "," : "", (long long)v);
	}
	return wire_close(content, p);
}

static inline uint8_t *field_put_tagged(const struct pf_op *op, uint8_t *p, uint64_t value)
{
	memcpy(p, op->tag, sizeof(op->tag));
	return wire_varint_wide(p + op->tag_len, value);
}

/* Arguments of a system call, eight bytes each. */
static inline uint8_t *field_put_longs(const struct pf_schema *s, const struct pf_op *op,
				       uint8_t *p, struct span at)
{
	for (uint32_t i = 0; i + sizeof(uint64_t) <= at.len; i += sizeof(uint64_t))
		p = field_put_tagged(
			op, p,
			field_hide_number(s, op, field_load(s, at.data + i, sizeof(uint64_t))));
	return p;
}

static uint8_t *field_put_repeated(const struct pf_schema *s, const struct pf_op *op, uint8_t *p,
				   struct span at)
{
	uint32_t size = op->element_size;

	if (likely(size == sizeof(uint64_t)))
		return field_put_longs(s, op, p, at);
	for (uint32_t i = 0; size && i + size <= at.len; i += size)
		p = field_put_tagged(op, p, field_load_number(s, at.data + i, size, op->is_signed));
	return p;
}

static uint8_t *field_put_hex(const struct pf_op *op, uint8_t *p, struct span at)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t *content = wire_open(p, op->field);

	p = content;
	for (uint32_t i = 0; i < at.len; i++) {
		*p++ = (uint8_t)digits[at.data[i] >> 4];
		*p++ = (uint8_t)digits[at.data[i] & 15];
	}
	return wire_close(content, p);
}

static bool mask_bit(const struct pf_schema *s, struct span at, uint32_t bit)
{
	uint32_t word = s->env.word_size, byte = bit / 8;

	if (byte >= at.len)
		return false;
	/* A bitmap consists of longs: on big-endian machines, bytes are reversed in each. */
	if (s->env.big_endian)
		byte = byte / word * word + (word - 1 - byte % word);
	return byte < at.len && (at.data[byte] >> bit % 8 & 1);
}

static uint8_t *field_put_mask(const struct pf_schema *s, const struct pf_op *op, uint8_t *p,
			       struct span at)
{
	uint8_t *content = wire_open(p, op->field);
	const char *comma = "";

	p = content;
	for (uint32_t bit = 0; bit < at.len * 8; bit++) {
		uint32_t last = bit;

		if (!mask_bit(s, at, bit))
			continue;
		while (mask_bit(s, at, last + 1))
			last++;
		p += snprintf((char *)p, PF_NUMBER_MAX, last > bit ? "%s%u-%u" : "%s%u", comma, bit,
			      last);
		comma = ",";
		bit = last;
	}
	return wire_close(content, p);
}

static uint8_t *field_put_symbol(struct pf_schema *s, const struct pf_op *op, uint8_t *p,
				 uint64_t address)
{
	uint8_t *content = wire_open(p, op->field);

	if (!address)
		return wire_bytes(p, op->field, "0", 1);
	return wire_close(
		content, (uint8_t *)print_symbol(s->printer, (char *)content, address, op->symbol));
}

static uint8_t *field_put_kernel_string(struct pf_schema *s, const struct pf_op *op, uint8_t *p,
					uint64_t address)
{
	char room[KERNEL_STRING_ROOM];
	const char *text = print_kernel_string(s->printer, address, room);

	return field_put_string(p, op->field, text, strlen(text));
}

/*
 * Makes the text of builtin_put_kernel_stack() in print/builtin.c or, for dynamic stacks, of
 * run_put_stack() in print/run_text.c.
 */
static int make_stack(struct pf_schema *s, const struct pf_op *op, struct span at)
{
	uint32_t word = op->element_size;
	const uint64_t end = word == 8 ? UINT64_MAX : UINT32_MAX;

	for (uint32_t i = 0; i + word <= at.len; i += word) {
		uint64_t address = field_load_number(s, at.data + i, word, false);
		char *p;

		if (address == end || (!address && op->dynamic != PF_DYNAMIC_TAIL))
			break;
		if (i)
			buf_puts(&s->made, " <- ");
		if (address == TRAMPOLINE_ADDRESS) {
			buf_puts(&s->made, TRAMPOLINE_TEXT);
			continue;
		}
		p = buf_reserve(&s->made, SYMBOL_TEXT_MAX);
		if (p)
			s->made.len += (size_t)(print_symbol(s->printer, p, address, 'f') - p);
	}
	return buf_error(&s->made);
}

static uint8_t *field_put(struct pf_schema *s, const struct pf_op *op, uint8_t *p, struct span at)
{
	uint64_t value;

	switch ((enum pf_kind)op->kind) {
	case PF_STRING:
		return field_put_string(p, op->field, (const char *)at.data,
					strnlen((const char *)at.data, at.len));
	case PF_NUMBERS:
		return field_put_numbers(s, op, p, at);
	case PF_REPEATED:
		return field_put_repeated(s, op, p, at);
	case PF_MASK:
		return field_put_mask(s, op, p, at);
	case PF_LINE:
		return field_put_line(op, p, at);
	case PF_STACK:
	case PF_PRINTED:
		return field_put_string(p, op->field, s->made.data, s->made.len);
	case PF_HEX:
		return field_put_hex(op, p, at);
	case PF_RAW:
		return wire_bytes(p, op->field, at.data, at.len);
	default:
		break;
	}
	value = field_load_number(s, at.data, op->size, op->is_signed);
	switch ((enum pf_kind)op->kind) {
	case PF_SYMBOL:
		return field_put_symbol(s, op, p, value);
	case PF_KERNEL:
		return field_put_kernel_string(s, op, p, value);
	case PF_POINTER:
		value = printer_pointer(s->printer, value);
		break;
	case PF_FUNCTION: {
		uint64_t iid = intern_function(s, value);

		value = iid ? iid : printer_pointer(s->printer, value);
		break;
	}
	case PF_DEVICE:
		value = device_number(value);
		break;
	default:
		value = field_hide_number(s, op, value);
	}
	if (op->narrow)
		value = (uint32_t)value;
	return field_put_tagged(op, p, value);
}

/* Copies up to the NUL, eight bytes at a time while ASCII; needs the worst case's room. */
static inline uint8_t *event_put_text(const struct pf_op *op, uint8_t *p, const uint8_t *text,
				      size_t max)
{
	uint8_t *content;
	size_t len = 0;

	memcpy(p, op->tag, sizeof(op->tag));
	content = p + op->tag_len + 1;
	for (; len + sizeof(uint64_t) <= max; len += sizeof(uint64_t)) {
		uint64_t word = load_bytes8(text + len), ends = zero_bytes(word);

		memcpy(content + len, text + len, sizeof(word));
		if (unlikely(word & EACH_BYTE(0x80)))
			goto strange;
		if (ends) {
			len += first_byte(ends);
			return wire_close(content, content + len);
		}
	}
	for (; len < max && text[len]; len++) {
		if (unlikely(text[len] & 0x80))
			goto strange;
		content[len] = text[len];
	}
	return wire_close(content, content + len);

strange:
	return field_put_string(p, op->field, (const char *)text, strnlen((const char *)text, max));
}

/* op->quick is PF_NUMBER or later; end: end of the field's bytes. */
static inline uint8_t *field_put_quick(const struct pf_schema *s, const struct pf_op *op,
				       uint8_t *p, const uint8_t *end)
{
	int64_t word;

	memcpy(&word, end - sizeof(word), sizeof(word));
	return field_put_tagged(op, p,
				field_hide_number(s, op, (uint64_t)(word >> op->shift) & op->mask));
}

/* A field in a submessage that begins with its name: GenericFtraceEvent.field (2). */
static uint8_t *event_put_named(struct pf_schema *s, const struct pf_op *op, uint8_t *p,
				struct span at)
{
	uint8_t *content = wire_open(p, 2);

	p = (uint8_t *)mempcpy(content, op->lead, op->lead_len);
	return wire_close(content, field_put(s, op, p, at));
}

static int make_printed(struct pf_schema *s, const struct pf_event *e, const struct record *rec)
{
	int r = event_print(s->printer, e->desc, rec, &s->made);

	while (s->made.len && s->made.data[s->made.len - 1] == '\n')
		s->made.len--;
	return r == -EBADMSG ? 0 : r;
}

/* Formats the event's text, at most one, before its room is computed. */
static int make_text(struct pf_schema *s, const struct pf_event *e, const struct record *rec)
{
	struct span at;

	buf_clear(&s->made);
	for (size_t i = 0; i < e->op_count; i++) {
		if (e->ops[i].kind == PF_PRINTED)
			return make_printed(s, e, rec);
		if (e->ops[i].kind == PF_STACK && field_locate(s, &e->ops[i], rec, &at))
			return make_stack(s, &e->ops[i], at);
	}
	return 0;
}

/* Consecutive events are mostly of one task. */
static void learn_pid(struct pf_schema *s, int32_t pid)
{
	s->pid = pid;
	s->pid_len = (uint8_t)(wire_uint(s->pid_wire, EVENT_PID, (uint32_t)pid) - s->pid_wire);
}

/* The low 28 bits take four bytes; the upper ones change every quarter of a second. */
static inline uint8_t *event_put_time(struct pf_schema *s, uint8_t *p, uint64_t ts)
{
	uint64_t high = ts >> 28;

	if (unlikely(!high))
		return wire_uint(p, EVENT_TIMESTAMP, ts);
	if (unlikely(high != s->time_high)) {
		s->time_high = high;
		s->time_len = (uint8_t)(wire_varint(s->time_wire, high) - s->time_wire);
	}
	p = wire_varint_low(wire_tag(p, EVENT_TIMESTAMP, WIRE_VARINT), ts);
	memcpy(p, s->time_wire, sizeof(s->time_wire));
	return p + s->time_len;
}

_hot_ int pf_event_write(struct pf_schema *s, const struct pf_event *e,
			 const struct trace_event *ev, struct buf *out)
{
	const bool whole = ev->rec.len >= e->quick_end;
	uint8_t *start, *p, *event, *message;
	int r = 0;

	if (unlikely(e->has_made) && make_text(s, e, &ev->rec) < 0)
		return -ENOMEM;
	start = (uint8_t *)buf_reserve(out, e->bound + e->bound_factor * ev->rec.len +
						    UTF8_GROWTH * s->made.len);
	if (!start)
		return -ENOMEM;
	event = p = wire_open(start, 2);
	p = event_put_time(s, p, ev->rec.ts);
	if (unlikely(ev->pid != s->pid || !s->pid_len))
		learn_pid(s, ev->pid);
	memcpy(p, s->pid_wire, sizeof(s->pid_wire));
	p += s->pid_len;
	memcpy(p, e->tag, sizeof(e->tag));
	message = p = p + e->tag_len + 1;
	if (e->lead_len)
		p = (uint8_t *)mempcpy(p, e->lead, e->lead_len);
	for (size_t i = 0; i < e->op_count; i++) {
		const struct pf_op *op = &e->ops[i];
		struct span at;

		if (op->quick == PF_NUMBER && likely(whole))
			p = field_put_quick(s, op, p, ev->rec.data + op->offset + op->size);
		else if (op->quick == PF_LONGS && likely(whole))
			p = field_put_longs(s, op, p,
					    (struct span){ ev->rec.data + op->offset, op->size });
		else if (unlikely(!field_locate(s, op, &ev->rec, &at)))
			r = -EBADMSG;
		else if (op->quick == PF_TEXT)
			p = event_put_text(op, p, at.data, at.len);
		else if (at.len || (op->kind != PF_NUMBERS && op->kind != PF_HEX))
			p = op->lead ? event_put_named(s, op, p, at) : field_put(s, op, p, at);
	}
	/*
	 * Omit common_flags (5): readers' raw table takes it for another, unnamed event. Compact
	 * wakings have a field for it.
	 */
	p = wire_close(message, p);
	out->len += (size_t)(wire_close(event, p) - start);
	return r;
}
