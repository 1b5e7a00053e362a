/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ops that print more than a plain field: __print_flags(), __print_array() and similar helpers
 * (kernel/trace/trace_output.c), pointers and their targets, padding, and memory passed to system
 * calls.
 */
#include "print/objects.h"
#include "print/run.h"

static void run_put_flags(struct run *r, const struct op *op)
{
	const struct name_table *t = op->table;
	uint64_t v = run_pop(r);
	bool first = true;

	for (size_t i = 0; i < t->count && v; i++) {
		const struct name_entry *e = &t->entries[i];

		if ((v & e->mask) != e->mask)
			continue;
		v &= ~e->mask;
		if (!first)
			run_put(r, t->delim, t->delim_len);
		first = false;
		run_put(r, e->text, e->len);
	}
	if (!v)
		return;
	if (!first)
		run_put(r, t->delim, t->delim_len);
	if (!run_room(r, 2 + INT_TEXT_MAX))
		return;
	memcpy(r->w, "0x", 2);
	r->w = format_hex(r->w + 2, v);
	if (t->incomplete)
		*r->w++ = '?';
}

static void run_put_name(struct run *r, const struct op *op)
{
	uint64_t i = run_pop(r);

	if (i < op->table->count)
		run_put(r, op->table->entries[i].text, op->table->entries[i].len);
	else
		r->truncated = true;
}

static void run_put_bytes(struct run *r, const struct op *op)
{
	int64_t len = (int64_t)run_pop(r);
	const uint8_t *data = run_memory(r, run_pop(r), len > 0 ? (uint64_t)len : 0);

	if (!data || len <= 0 || !run_room(r, (size_t)len * 3))
		return;
	for (int64_t i = 0; i < len; i++) {
		if (i && !op->imm)
			*r->w++ = ' ';
		r->w = format_hex_byte(r->w, data[i]);
	}
}

static void run_put_int_array(struct run *r)
{
	uint64_t size = run_pop(r), count = run_pop(r), address = run_pop(r);
	const uint8_t *data;

	if (size != 1 && size != 2 && size != 4 && size != 8) {
		r->truncated = true;
		return;
	}
	/* The kernel's count is an int: a negative one prints nothing. */
	if ((int64_t)count < 0 || count > UINT32_MAX)
		count = 0;
	data = run_memory(r, address, count * size);
	if (!data || !run_room(r, (size_t)count * 20 + 2))
		return;
	*r->w++ = '{';
	for (uint64_t i = 0; i < count; i++) {
		if (i)
			*r->w++ = ',';
		memcpy(r->w, "0x", 2);
		r->w = format_hex(
			r->w + 2,
			printer_number(r->p, load_uint(data + i * size, (unsigned)size, r->swap)));
	}
	*r->w++ = '}';
}

static struct object_env run_object_env(const struct run *r)
{
	return (struct object_env){ r->word_size, r->p->table->env.big_endian };
}

static void run_put_bitmask(struct run *r)
{
	uint64_t len = run_pop(r);
	const uint8_t *data = run_memory(r, run_pop(r), len);
	const struct object_env env = run_object_env(r);

	if (!data)
		return;
	/* A bitmap consists of longs: extra bytes are dropped. */
	bitmask_print(&env, data, (unsigned)(len / r->word_size * r->word_size * 8),
		      run_enter_buf(r));
	run_leave_buf(r);
}

/* Prints the stack trace of a synthetic event, one symbol per line. */
static void run_put_stack(struct run *r)
{
	uint64_t len = run_pop(r);
	const uint8_t *data = run_memory(r, run_pop(r), len);

	run_put(r, "\n", 1);
	for (uint64_t i = 0; data && i + r->word_size <= len; i += r->word_size) {
		uint64_t address = load_uint(data + i, r->word_size, r->swap);

		if (!address || !run_room(r, SYMBOL_TEXT_MAX + 8))
			break;
		memcpy(r->w, "=> ", 3);
		r->w = print_symbol(r->p, r->w + 3, address, 'S');
		*r->w++ = '\n';
	}
}

/* Pops the stars' values into a copy of the spec. */
static struct conversion run_spec(struct run *r, const struct op *op)
{
	struct conversion spec = *op->spec;

	if (op->stars & OP_STAR_PRECISION) {
		int64_t v = (int32_t)run_pop(r);

		spec.format.precision = (int)MIN(v, INT16_MAX);
	}
	if (op->stars & OP_STAR_WIDTH) {
		int64_t v = (int32_t)run_pop(r);

		if (v < 0) {
			spec.format.left = true;
			v = -v;
		}
		/* The kernel accepts 8 M, but no line is that long (trace_seq holds 8 KiB). */
		spec.format.width = (int)MIN(v, 1 << 16);
	}
	return spec;
}

static void run_put_number(struct run *r, const struct op *op)
{
	struct conversion spec;
	uint64_t v;

	if (likely(!op->stars)) { /* the bound includes its width */
		r->w = format_number(r->w, run_pop(r), &op->spec->format);
		return;
	}
	spec = run_spec(r, op);
	v = run_pop(r);
	if (run_room(r, (size_t)MAX(spec.format.width, 0) + (size_t)MAX(spec.format.precision, 0)))
		r->w = format_number(r->w, v, &spec.format);
}

static void run_put_char(struct run *r, const struct op *op)
{
	struct conversion spec = run_spec(r, op);
	char c = (char)run_pop(r);
	size_t pad = spec.format.width > 1 ? (size_t)spec.format.width - 1 : 0;

	if (!run_room(r, pad + 1))
		return;
	if (!spec.format.left) {
		memset(r->w, ' ', pad);
		r->w += pad;
	}
	*r->w++ = c;
	if (spec.format.left) {
		memset(r->w, ' ', pad);
		r->w += pad;
	}
}

static void run_pad(struct run *r, const struct op *op)
{
	struct conversion spec = run_spec(r, op);
	size_t from = r->marks[op->arg], len = (size_t)(r->w - r->out->data) - from, n;
	char *start;

	if (spec.format.precision >= 0 && len > (size_t)spec.format.precision)
		len = (size_t)spec.format.precision;
	n = spec.format.width > 0 && (size_t)spec.format.width > len
		    ? (size_t)spec.format.width - len
		    : 0;
	if (!run_room(r, n))
		return;
	start = r->out->data + from;
	if (spec.format.left) {
		memset(start + len, ' ', n);
	} else if (n) {
		memmove(start + n, start, len);
		memset(start, ' ', n);
	}
	r->w = start + len + n;
}

static void run_cut(struct run *r, const struct op *op)
{
	char *start = r->out->data + r->marks[op->arg];

	r->w = start + strnlen(start, (size_t)(r->w - start));
}

/* Prints a string in the recorded kernel's memory. */
static void run_put_kernel_string(struct run *r)
{
	char room[KERNEL_STRING_ROOM];
	const char *text = print_kernel_string(r->p, run_pop(r), room);

	run_put(r, text, strlen(text));
}

static void run_put_pointer(struct run *r, const struct op *op)
{
	uint64_t v = printer_pointer(r->p, run_pop(r));
	struct int_format f = op->spec->format;

	if (f.width < 0) {
		r->w = format_hex_padded(r->w, v, op->size * 2U);
		return;
	}
	f.base = 16;
	r->w = format_number(r->w, v, &f);
}

static void run_put_symbol(struct run *r, const struct op *op)
{
	uint64_t v = run_pop(r);

	if (run_room(r, SYMBOL_TEXT_MAX))
		r->w = print_symbol(r->p, r->w, v, (char)op->arg);
}

static void run_put_object(struct run *r, const struct op *op)
{
	struct conversion spec = run_spec(r, op);
	uint64_t offset = run_pop(r);
	const uint8_t *data = run_memory(r, offset, 0);
	const struct object_env env = run_object_env(r);

	if (!data)
		return;
	if (!object_print(&env, &spec, data, r->rec->len - (size_t)offset, spec.format.width,
			  run_enter_buf(r)))
		r->truncated = true;
	run_leave_buf(r);
}

static bool run_is_printable(uint8_t c)
{
	return c >= ' ' && c <= '~';
}

/*
 * Prints (61:62:0a, ...) "ab."...: the text only if some byte is printable, the dots only if the
 * kernel kept a part of the bytes.
 */
static void run_put_syscall_bytes(struct run *r, const struct op *op)
{
	uint32_t loc = (uint32_t)load_uint(r->rec->data + op->offset, 4, r->swap);
	uint64_t len = loc >> 16, given = len;
	const uint8_t *data = run_memory(r, loc & 0xffff, len);
	bool cut, printable = false;

	if (!data || !run_room(r, (size_t)len * 4 + 16))
		return;
	if (op->size)
		given = load_uint(r->rec->data + op->imm, op->size, r->swap);
	cut = (int)len < (int)given;
	*r->w++ = '(';
	for (uint64_t i = 0; i < len; i++) {
		if (i)
			*r->w++ = ':';
		r->w = format_hex_byte(r->w, data[i]);
		printable |= run_is_printable(data[i]);
	}
	run_put(r, ", ...)" + (cut ? 0 : 5), cut ? 6 : 1);
	if (!printable)
		return;
	run_put(r, " \"", 2);
	for (uint64_t i = 0; i < len; i++)
		*r->w++ = run_is_printable(data[i]) ? (char)data[i] : '.';
	run_put(r, "\"...", cut ? 4 : 1);
}

/*
 * Prints a string of user space. Length 0: the kernel could not read it, and the data there may
 * belong to another argument.
 */
static void run_put_syscall_text(struct run *r, const struct op *op)
{
	uint32_t loc = (uint32_t)load_uint(r->rec->data + op->offset, 4, r->swap);
	const uint8_t *data = run_memory(r, loc & 0xffff, loc >> 16);

	if (data)
		run_put(r, (const char *)data, strnlen((const char *)data, loc >> 16));
}

/* Prints a.b. (61:0a:62:00). The kernel's last NUL is one of the bytes. */
static void run_put_user_text(struct run *r, const struct op *op)
{
	uint32_t loc = (uint32_t)load_uint(r->rec->data + op->offset, 4, r->swap);
	uint64_t len = loc >> 16, i = 0;
	const uint8_t *data = run_memory(r, (loc & 0xffff) + op->imm, len);

	if (!data || !run_room(r, (size_t)len * 4 + 3))
		return;
	while (i < len && (!data[i] || run_is_printable(data[i])))
		i++;
	if (i == len) {
		run_put(r, (const char *)data, strnlen((const char *)data, (size_t)len));
		return;
	}
	for (i = 0; i < len; i++)
		*r->w++ = run_is_printable(data[i]) ? (char)data[i] : '.';
	for (i = 0; i < len; i++) {
		run_put(r, i ? ":" : " (", i ? 1 : 2);
		r->w = format_hex_byte(r->w, data[i]);
	}
	run_put(r, ")", 1);
}

/* Prints 'a'(97) or (10). To the kernel's isprint() the upper half of Latin 1 is printable. */
static void run_put_user_byte(struct run *r, const struct op *op)
{
	uint8_t c = r->rec->data[op->offset];

	if (!run_room(r, 3 + 2 + INT_TEXT_MAX))
		return;
	if (run_is_printable(c) || c >= 0xa0) {
		*r->w++ = '\'';
		*r->w++ = (char)c;
		*r->w++ = '\'';
	}
	*r->w++ = '(';
	r->w = format_dec(r->w, c);
	*r->w++ = ')';
}

void run_text(struct run *r, const struct op *op)
{
	switch (op->code) {
	case OP_NUMBER:
		run_put_number(r, op);
		break;
	case OP_CHAR:
		run_put_char(r, op);
		break;
	case OP_STR_POINTER:
		run_put_kernel_string(r);
		break;
	case OP_FLAGS:
		run_put_flags(r, op);
		break;
	case OP_NAME:
		run_put_name(r, op);
		break;
	case OP_BYTES:
		run_put_bytes(r, op);
		break;
	case OP_INT_ARRAY:
		run_put_int_array(r);
		break;
	case OP_BITMASK:
		run_put_bitmask(r);
		break;
	case OP_STACK:
		run_put_stack(r);
		break;
	case OP_POINTER:
		run_put_pointer(r, op);
		break;
	case OP_SYMBOL:
		run_put_symbol(r, op);
		break;
	case OP_OBJECT:
		run_put_object(r, op);
		break;
	case OP_SYSCALL_BYTES:
		run_put_syscall_bytes(r, op);
		break;
	case OP_SYSCALL_TEXT:
		run_put_syscall_text(r, op);
		break;
	case OP_USER_TEXT:
		run_put_user_text(r, op);
		break;
	case OP_USER_BYTE:
		run_put_user_byte(r, op);
		break;
	case OP_MARK:
		r->marks[op->arg] = (size_t)(r->w - r->out->data);
		break;
	case OP_PAD:
		run_pad(r, op);
		break;
	case OP_CUT:
		run_cut(r, op);
		break;
	case OP_UNKNOWN:
		run_put(r, "<unknown>", 9);
		break;
	default:
		break;
	}
}
