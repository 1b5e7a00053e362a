/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/program.h"

#include <string.h>

#include "print/builtin.h"
#include "print/objects.h"
#include "print/printer.h"

/*
 * A running program. The output has room for all ops of known size from the
 * start (prog->bound); an op that appends more asks for it and for the bound
 * once more, so that the small ops need no checks.
 */
struct run {
	const struct program *prog;
	struct printer *p;
	const struct record *rec;
	struct buf *out;
	char *w, *limit;
	uint64_t stack[OP_STACK_MAX + 4];
	unsigned depth;
	size_t marks[OP_SLOTS];
	bool swap, truncated, no_memory;
	uint8_t word_size;
};

/* Room for n bytes and for all that is still to come; what was written is kept. */
static bool room(struct run *r, size_t n)
{
	char *w;

	if (likely((size_t)(r->limit - r->w) >= n + r->prog->bound))
		return true;
	r->out->len = (size_t)(r->w - r->out->data);
	w = buf_reserve(r->out, n + r->prog->bound);
	if (!w) {
		r->no_memory = true;
		return false;
	}
	r->w = w;
	r->limit = r->out->data + r->out->cap;
	return true;
}

/* Runs f on the buffer itself, for printers that append to one. */
static struct buf *enter_buf(struct run *r)
{
	r->out->len = (size_t)(r->w - r->out->data);
	return r->out;
}

static void leave_buf(struct run *r)
{
	r->w = r->out->data + r->out->len;
	r->limit = r->out->data + r->out->cap;
	if (r->out->failed)
		r->no_memory = true;
	else
		room(r, 0);
}

static void put(struct run *r, const char *text, size_t len)
{
	if (!room(r, len))
		return;
	memcpy(r->w, text, len);
	r->w += len;
}

static uint64_t pop(struct run *r)
{
	return r->stack[--r->depth];
}

static void push(struct run *r, uint64_t v)
{
	r->stack[r->depth++] = v;
}

/* From offset in the record to the first NUL or the record's end. */
static void put_string(struct run *r, uint64_t offset)
{
	const char *s;
	size_t n;

	if (offset >= r->rec->len) {
		r->truncated |= offset > r->rec->len;
		return;
	}
	s = (const char *)r->rec->data + offset;
	n = strnlen(s, r->rec->len - (size_t)offset);
	if (likely(n <= OP_SHORT_STRING && r->rec->len - offset >= OP_SHORT_STRING)) {
		memcpy(r->w, s, OP_SHORT_STRING);
		r->w += n;
		return;
	}
	put(r, s, n);
}

static uint64_t dynamic_offset(const struct run *r, const struct op *op)
{
	return (load_uint(r->rec->data + op->offset, 4, r->swap) & 0xffff) + op->imm;
}

static uint32_t dynamic_len(const struct run *r, const struct op *op)
{
	return (uint32_t)load_uint(r->rec->data + op->offset, 4, r->swap) >> 16;
}

/* Memory in the record; NULL if it is not all there. */
static const uint8_t *memory(struct run *r, uint64_t offset, uint64_t len)
{
	if (offset > r->rec->len || len > r->rec->len - offset) {
		r->truncated = true;
		return NULL;
	}
	return r->rec->data + offset;
}

static void put_flags(struct run *r, const struct op *op)
{
	const struct name_table *t = op->table;
	uint64_t v = pop(r);
	bool first = true;

	for (size_t i = 0; i < t->count && v; i++) {
		const struct name_entry *e = &t->entries[i];

		if ((v & e->mask) != e->mask)
			continue;
		v &= ~e->mask;
		if (!first)
			put(r, t->delim, t->delim_len);
		first = false;
		put(r, e->text, e->len);
	}
	if (!v)
		return;
	if (!first)
		put(r, t->delim, t->delim_len);
	if (!room(r, 2 + INT_TEXT_MAX))
		return;
	memcpy(r->w, "0x", 2);
	r->w = format_hex(r->w + 2, v);
	if (t->incomplete)
		*r->w++ = '?';
}

static void put_symbolic(struct run *r, const struct op *op)
{
	const struct name_table *t = op->table;
	uint64_t v = pop(r);

	for (size_t i = 0; i < t->count; i++)
		if (t->entries[i].mask == v && t->entries[i].len) {
			put(r, t->entries[i].text, t->entries[i].len);
			return;
		} else if (t->entries[i].mask == v) {
			break; /* an empty name counts as none */
		}
	memcpy(r->w, "0x", 2);
	r->w = format_hex(r->w + 2, v);
	if (t->incomplete)
		*r->w++ = '?';
}

static void put_name(struct run *r, const struct op *op)
{
	uint64_t i = pop(r);

	if (i < op->table->count)
		put(r, op->table->entries[i].text, op->table->entries[i].len);
	else
		r->truncated = true;
}

static void put_bytes(struct run *r, const struct op *op)
{
	int64_t len = (int64_t)pop(r);
	const uint8_t *data = memory(r, pop(r), len > 0 ? (uint64_t)len : 0);

	if (!data || len <= 0 || !room(r, (size_t)len * 3))
		return;
	for (int64_t i = 0; i < len; i++) {
		if (i && !op->imm)
			*r->w++ = ' ';
		r->w = format_hex_byte(r->w, data[i]);
	}
}

static void put_int_array(struct run *r)
{
	uint64_t size = pop(r), count = pop(r), address = pop(r);
	const uint8_t *data;

	if (size != 1 && size != 2 && size != 4 && size != 8) {
		r->truncated = true;
		return;
	}
	/* The count is an int of the kernel's: below zero there is nothing. */
	if ((int64_t)count < 0 || count > UINT32_MAX)
		count = 0;
	data = memory(r, address, count * size);
	if (!data || !room(r, count * 20 + 2))
		return;
	*r->w++ = '{';
	for (uint64_t i = 0; i < count; i++) {
		if (i)
			*r->w++ = ',';
		memcpy(r->w, "0x", 2);
		r->w = format_hex(r->w + 2, load_uint(data + i * size, (unsigned)size, r->swap));
	}
	*r->w++ = '}';
}

static struct object_env object_env(const struct run *r)
{
	return (struct object_env){ r->word_size, r->p->table->env.big_endian };
}

static void put_bitmask(struct run *r)
{
	uint64_t len = pop(r);
	const uint8_t *data = memory(r, pop(r), len);
	const struct object_env env = object_env(r);

	if (!data)
		return;
	/* A bitmap is made of longs: a length that is not is no bitmap. */
	bitmask_print(&env, data, (unsigned)(len / r->word_size * r->word_size * 8), enter_buf(r));
	leave_buf(r);
}

/* A stack trace of a synthetic event: symbols, one a line. */
static void put_stack(struct run *r)
{
	uint64_t len = pop(r);
	const uint8_t *data = memory(r, pop(r), len);

	put(r, "\n", 1);
	for (uint64_t i = 0; data && i + r->word_size <= len; i += r->word_size) {
		uint64_t address = load_uint(data + i, r->word_size, r->swap);

		if (!address || !room(r, SYMBOL_TEXT_MAX + 8))
			break;
		memcpy(r->w, "=> ", 3);
		r->w = print_symbol(r->p, r->w + 3, address, 'S');
		*r->w++ = '\n';
	}
}

/* Pops the stars' values into a copy of the spec. */
static struct conversion spec_of(struct run *r, const struct op *op)
{
	struct conversion spec = *op->spec;

	if (op->stars & OP_STAR_PRECISION) {
		int64_t v = (int32_t)pop(r);

		spec.format.precision = (int)MIN(v, INT16_MAX);
	}
	if (op->stars & OP_STAR_WIDTH) {
		int64_t v = (int32_t)pop(r);

		if (v < 0) {
			spec.format.left = true;
			v = -v;
		}
		/* The kernel takes 8 M; no line is that long (trace_seq holds 8 KiB). */
		spec.format.width = (int)MIN(v, 1 << 16);
	}
	return spec;
}

static void put_number(struct run *r, const struct op *op)
{
	struct conversion spec;
	uint64_t v;

	if (likely(!op->stars)) { /* its width is in the bound */
		r->w = format_number(r->w, pop(r), &op->spec->format);
		return;
	}
	spec = spec_of(r, op);
	v = pop(r);
	if (room(r, (size_t)MAX(spec.format.width, 0) + (size_t)MAX(spec.format.precision, 0)))
		r->w = format_number(r->w, v, &spec.format);
}

static void put_char(struct run *r, const struct op *op)
{
	struct conversion spec = spec_of(r, op);
	char c = (char)pop(r);
	size_t pad = spec.format.width > 1 ? (size_t)spec.format.width - 1 : 0;

	if (!room(r, pad + 1))
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

static void pad(struct run *r, const struct op *op)
{
	struct conversion spec = spec_of(r, op);
	size_t from = r->marks[op->arg], len = (size_t)(r->w - r->out->data) - from, n;
	char *start;

	if (spec.format.precision >= 0 && len > (size_t)spec.format.precision)
		len = (size_t)spec.format.precision;
	n = spec.format.width > 0 && (size_t)spec.format.width > len
		    ? (size_t)spec.format.width - len
		    : 0;
	if (!room(r, n))
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

static void cut(struct run *r, const struct op *op)
{
	char *start = r->out->data + r->marks[op->arg];

	r->w = start + strnlen(start, (size_t)(r->w - start));
}

/* A string in the recorded kernel's memory. */
static void put_kernel_string(struct run *r)
{
	uint64_t address = pop(r);
	const char *text;

	if (!address) {
		put(r, "(null)", 6);
		return;
	}
	if (address < 4096 || expr_normalize(address, r->word_size, true) >= (uint64_t)-4095) {
		put(r, "(efault)", 8);
		return;
	}
	text = table_printk(r->p->table, address);
	if (text) {
		put(r, text, strlen(text));
		return;
	}
	/* As the kernel marks a string that it dares not read: (0xADDRESS). */
	if (!room(r, 4 + INT_TEXT_MAX))
		return;
	*r->w++ = '(';
	memcpy(r->w, "0x", 2);
	r->w = format_hex(r->w + 2, printer_pointer(r->p, address));
	*r->w++ = ')';
}

static void put_pointer(struct run *r, const struct op *op)
{
	uint64_t v = printer_pointer(r->p, pop(r));
	struct int_format f = op->spec->format;

	if (f.width < 0) {
		r->w = format_hex_padded(r->w, v, op->size * 2U);
		return;
	}
	f.base = 16;
	r->w = format_number(r->w, v, &f);
}

static void put_symbol(struct run *r, const struct op *op)
{
	uint64_t v = pop(r);

	if (room(r, SYMBOL_TEXT_MAX))
		r->w = print_symbol(r->p, r->w, v, (char)op->arg);
}

static void put_object(struct run *r, const struct op *op)
{
	struct conversion spec = spec_of(r, op);
	uint64_t offset = pop(r);
	const uint8_t *data = memory(r, offset, 0);
	const struct object_env env = object_env(r);

	if (!data)
		return;
	if (!object_print(&env, &spec, data, r->rec->len - (size_t)offset, spec.format.width,
			  enter_buf(r)))
		r->truncated = true;
	leave_buf(r);
}

static void put_syscall_arg(struct run *r, const struct op *op)
{
	uint64_t v = load_uint(r->rec->data + op->offset, op->size, r->swap);

	if (op->arg && v < 10) {
		*r->w++ = (char)('0' + v);
		return;
	}
	if (op->arg) {
		memcpy(r->w, "0x", 2);
		r->w += 2;
	}
	r->w = format_hex(r->w, v);
}

static bool is_printable(uint8_t c)
{
	return c >= ' ' && c <= '~';
}

/* "(61:62:0a, ...) "ab."...": the text if there is any; the dots where more was given than kept. */
static void put_syscall_bytes(struct run *r, const struct op *op)
{
	uint32_t loc = (uint32_t)load_uint(r->rec->data + op->offset, 4, r->swap);
	uint64_t len = loc >> 16, given = len;
	const uint8_t *data = memory(r, loc & 0xffff, len);
	bool cut, printable = false;

	if (!data || !room(r, len * 4 + 16))
		return;
	if (op->size)
		given = load_uint(r->rec->data + op->imm, op->size, r->swap);
	cut = (int)len < (int)given;
	*r->w++ = '(';
	for (uint64_t i = 0; i < len; i++) {
		if (i)
			*r->w++ = ':';
		r->w = format_hex_byte(r->w, data[i]);
		printable |= is_printable(data[i]);
	}
	put(r, ", ...)" + (cut ? 0 : 5), cut ? 6 : 1);
	if (!printable)
		return;
	put(r, " \"", 2);
	for (uint64_t i = 0; i < len; i++)
		*r->w++ = is_printable(data[i]) ? (char)data[i] : '.';
	put(r, "\"...", cut ? 4 : 1);
}

/* A string of user space. No length: it could not be read, and another may lie there. */
static void put_syscall_text(struct run *r, const struct op *op)
{
	uint32_t loc = (uint32_t)load_uint(r->rec->data + op->offset, 4, r->swap);
	const uint8_t *data = memory(r, loc & 0xffff, loc >> 16);

	if (data)
		put(r, (const char *)data, strnlen((const char *)data, loc >> 16));
}

static void deref(struct run *r, const struct op *op)
{
	const uint8_t *data = memory(r, pop(r), op->size);

	push(r, data ? expr_normalize(load_uint(data, op->size, r->swap), op->size, op->is_signed)
		     : 0);
}

static void binary(struct run *r, const struct op *op)
{
	uint64_t b = pop(r), a = pop(r);

	push(r, expr_binary(op->arg, a, b, op->size, op->is_signed));
}

static void select_value(struct run *r)
{
	uint64_t b = pop(r), a = pop(r), c = pop(r);

	push(r, c ? a : b);
}

/* _msecs of include/linux/jiffies.h: exact where HZ divides 1000 or is a multiple of it. */
static void to_msecs(struct run *r, const struct op *op)
{
	uint64_t j = pop(r), hz = op->imm;

	if (hz <= 1000 && 1000 % hz == 0)
		j *= 1000 / hz;
	else if (hz > 1000 && hz % 1000 == 0)
		j = (j + hz / 1000 - 1) / (hz / 1000);
	else
		j = (uint64_t)(((unsigned __int128)j * 1000 + hz - 1) / hz);
	push(r, (uint32_t)j);
}

static int builtin(struct run *r, const struct op *op)
{
	int e = builtin_print((enum builtin)op->arg, r->p, r->p->event, r->rec, enter_buf(r));

	leave_buf(r);
	return e;
}

static void run_value(struct run *r, const struct op *op)
{
	switch (op->code) {
	case OP_DYNAMIC:
		push(r, dynamic_offset(r, op));
		break;
	case OP_DYNAMIC_LEN:
		push(r, dynamic_len(r, op));
		break;
	case OP_DEREF:
		deref(r, op);
		break;
	case OP_BINARY:
		binary(r, op);
		break;
	case OP_UNARY: {
		uint64_t v = pop(r);

		push(r, expr_normalize(op->arg == '-' ? 0 - v : ~v, op->size, op->is_signed));
		break;
	}
	case OP_NORMALIZE:
		push(r, expr_normalize(pop(r), op->size, op->is_signed));
		break;
	case OP_BOOL:
		push(r, pop(r) != 0);
		break;
	case OP_SELECT:
		select_value(r);
		break;
	case OP_MSECS:
		to_msecs(r, op);
		break;
	default:
		break;
	}
}

static void run_text(struct run *r, const struct op *op)
{
	switch (op->code) {
	case OP_NUMBER:
		put_number(r, op);
		break;
	case OP_CHAR:
		put_char(r, op);
		break;
	case OP_STR_ADDRESS:
		put_string(r, pop(r));
		break;
	case OP_STR_POINTER:
		put_kernel_string(r);
		break;
	case OP_FLAGS:
		put_flags(r, op);
		break;
	case OP_NAME:
		put_name(r, op);
		break;
	case OP_BYTES:
		put_bytes(r, op);
		break;
	case OP_INT_ARRAY:
		put_int_array(r);
		break;
	case OP_BITMASK:
		put_bitmask(r);
		break;
	case OP_STACK:
		put_stack(r);
		break;
	case OP_POINTER:
		put_pointer(r, op);
		break;
	case OP_SYMBOL:
		put_symbol(r, op);
		break;
	case OP_OBJECT:
		put_object(r, op);
		break;
	case OP_SYSCALL_BYTES:
		put_syscall_bytes(r, op);
		break;
	case OP_SYSCALL_TEXT:
		put_syscall_text(r, op);
		break;
	case OP_MARK:
		r->marks[op->arg] = (size_t)(r->w - r->out->data);
		break;
	case OP_PAD:
		pad(r, op);
		break;
	case OP_CUT:
		cut(r, op);
		break;
	case OP_UNKNOWN:
		put(r, "<unknown>", 9);
		break;
	default:
		break;
	}
}

static inline void put_literal(struct run *r, const struct op *op)
{
	size_t n = op->text_len;

	/* Most literals are short: a copy of known size is a few moves. */
	memcpy(r->w, op->text, OP_TEXT_SLACK);
	if (unlikely(n > OP_TEXT_SLACK))
		memcpy(r->w + OP_TEXT_SLACK, op->text + OP_TEXT_SLACK, n - OP_TEXT_SLACK);
	r->w += n;
}

static inline char *put_signed(char *w, int64_t v)
{
	if (v < 0) {
		*w++ = '-';
		return format_dec(w, 0 - (uint64_t)v);
	}
	return format_dec(w, (uint64_t)v);
}

static inline __attribute__((always_inline)) int execute(struct run *r, bool checked)
{
	const uint8_t *data = r->rec->data;
	const struct op *op = r->prog->ops;

	for (;; op++) {
		if (op->text_len)
			put_literal(r, op);
		if (checked && unlikely(op->need > r->rec->len)) {
			r->truncated = true;
			return 0;
		}
		switch (op->code) {
		case OP_END:
			return 0;
		case OP_NOTHING:
			break;
		case OP_CONST:
			push(r, op->imm);
			break;
		case OP_LOAD:
			push(r, expr_normalize(load_uint(data + op->offset, op->size, r->swap),
					       op->size, op->is_signed));
			break;
		case OP_BINARY_IMM:
			if (likely(op->arg == '&'))
				r->stack[r->depth - 1] &= op->imm;
			else
				push(r, expr_binary(op->arg, pop(r), op->imm, op->size,
						    op->is_signed));
			break;
		case OP_DEC_S32:
			r->w = put_signed(r->w, (int32_t)load_uint(data + op->offset, 4, false));
			break;
		case OP_DEC_U32:
			r->w = format_dec_u32(r->w,
					      (uint32_t)load_uint(data + op->offset, 4, false));
			break;
		case OP_DEC_S64:
			r->w = put_signed(r->w, (int64_t)load_uint(data + op->offset, 8, false));
			break;
		case OP_DEC_U64:
			r->w = format_dec(r->w, load_uint(data + op->offset, 8, false));
			break;
		case OP_HEX_U32:
			r->w = format_hex(r->w, load_uint(data + op->offset, 4, false));
			break;
		case OP_HEX_U64:
			r->w = format_hex(r->w, load_uint(data + op->offset, 8, false));
			break;
		case OP_DEC:
			r->w = op->is_signed ? put_signed(r->w, (int64_t)pop(r))
					     : format_dec(r->w, pop(r));
			break;
		case OP_HEX:
			r->w = format_hex(r->w, pop(r));
			break;
		case OP_STR_STATIC:
			put_string(r, op->offset);
			break;
		case OP_STR_DYNAMIC:
			put_string(r, dynamic_offset(r, op));
			break;
		case OP_SYMBOLIC:
			put_symbolic(r, op);
			break;
		case OP_SYSCALL_ARG:
			put_syscall_arg(r, op);
			break;
		case OP_BUILTIN:
			return builtin(r, op);
		case OP_JUMP:
			op = r->prog->ops + op->offset - 1;
			break;
		case OP_JUMP_ZERO:
			if (!pop(r))
				op = r->prog->ops + op->offset - 1;
			break;
		default:
			if (op->code < OP_DEC)
				run_value(r, op);
			else
				run_text(r, op);
			break;
		}
		if (unlikely(r->no_memory))
			return -ENOMEM;
	}
}

int program_run(const struct program *prog, struct printer *p, const struct record *rec,
		struct buf *out)
{
	struct run r;
	int e;

	r.prog = prog;
	r.p = p;
	r.rec = rec;
	r.out = out;
	r.w = buf_reserve(out, prog->bound);
	if (unlikely(!r.w))
		return -ENOMEM;
	r.limit = out->data + out->cap;
	r.depth = 0;
	r.swap = p->table->swap;
	r.word_size = (uint8_t)p->table->env.word_size;
	r.truncated = r.no_memory = false;
	e = likely(rec->len >= prog->need) ? execute(&r, false) : execute(&r, true);
	if (r.no_memory || e == -ENOMEM)
		return -ENOMEM;
	if (r.truncated || e == -EBADMSG)
		put(&r, "[truncated]", 11);
	out->len = (size_t)(r.w - out->data);
	return r.truncated ? -EBADMSG : e;
}
