/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Printing an event as the kernel prints it.
 *
 * The kernel prints an event with its print fmt, a C expression in the event's format file:
 *
 * 	print fmt: "comm=%s prio=%d %s", REC->comm, REC->prio,
 * 		   __print_flags(REC->state, "|", { 1, "S" }, { 2, "D" })
 *
 * A recording holds millions of events of a few hundred kinds, so the expression is compiled once
 * per kind, when the event table is sealed, and only the resulting program runs per event:
 *
 * 	format file      expr.c, call.c, statement.c       compile*.c, special.c, syscall.c
 * 	"print fmt: ..." ---------------------------> tree ---------------------------> program
 * 	                                                                                   |
 * 	record ------------------------------------------------------> program_run() <-----+
 * 	                                                                  |
 * 	                                                                text
 *
 * 	ops:  ["comm=" STR_STATIC 8] [" prio=" DEC_S32 24] [" " LOAD 28] [FLAGS table] [END]
 *
 * An op is 32 bytes: the literal before it, and what to print. Numbers are pushed onto a stack of
 * 64 bit values, normalized to the C type that they have in the kernel. A string is never a value:
 * its op writes it to the output. A width is applied afterwards, to the text since an OP_MARK.
 *
 * Invariants
 * - need: the bytes of a record that static fields reach up to. Both the record and the format are
 *   hostile, so a field may lie outside. A record of at least `need` bytes runs unchecked; a
 *   shorter one runs checked, stops at the first op that does not fit, and is marked "[truncated]".
 *   Dynamic offsets come from the record itself and are always checked.
 * - bound: the bytes that all ops of known size can write. r->limit - r->w is at least the bound of
 *   the remaining ops, so these write without a check. An op of unknown size reserves its size and
 *   the whole bound again (run_room). Copies of constant size may write OP_TEXT_SLACK bytes past
 *   the end; the bound includes them.
 * - depth: the compiler counts pushes and pops, so the stack cannot overflow at run time.
 * - Jumps only go forward: every program ends.
 * - A sealed program is read-only. All state of a run is in struct run and struct printer, one per
 *   thread.
 *
 * Reasons
 * - A walk through libtraceevent's tree for each event would not give the kernel's exact text: the
 *   tree drops casts and widths, on which that text depends. Tests still compare with it.
 * - A field, an array element and a mask each take one op, because an op costs a dispatch.
 * - The function tracer's events outnumber all others. So its program is the single op OP_FUNCTION
 *   with a path of its own, which saves 65 instructions for each event.
 */
#include "print/program.h"

#include "base/swar.h"
#include "print/builtin.h"
#include "print/run.h"

#define TRUNCATED "[truncated]"

/* Bytes before the first NUL, at most OP_SHORT_STRING. */
static inline size_t run_short_length(const char *s)
{
	uint64_t zeros = zero_bytes(load_bytes8(s));

	if (zeros)
		return first_byte(zeros);
	zeros = zero_bytes(load_bytes8(s + 8));
	return zeros ? 8 + first_byte(zeros) : OP_SHORT_STRING;
}

/* Copies from offset in the record to the first NUL or the record's end. */
static void run_put_string(struct run *r, uint64_t offset)
{
	const char *s;
	size_t n;

	if (offset >= r->rec->len) {
		r->truncated |= offset > r->rec->len;
		return;
	}
	s = (const char *)r->rec->data + offset;
	if (likely(r->rec->len - offset >= OP_SHORT_STRING)) {
		n = run_short_length(s);
		if (likely(n < OP_SHORT_STRING)) {
			memcpy(r->w, s, OP_SHORT_STRING);
			r->w += n;
			return;
		}
	}
	n = strnlen(s, r->rec->len - (size_t)offset);
	run_put(r, s, n);
}

bool run_make_room(struct run *r, size_t n)
{
	char *w;

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

static uint64_t run_dynamic_offset(const struct run *r, const struct op *op)
{
	return (load_uint(r->rec->data + op->offset, 4, r->swap) & 0xffff) + op->imm;
}

static uint32_t run_dynamic_len(const struct run *r, const struct op *op)
{
	return (uint32_t)load_uint(r->rec->data + op->offset, 4, r->swap) >> 16;
}

static void run_put_symbolic(struct run *r, const struct op *op)
{
	const struct name_table *t = op->table;
	uint64_t v = run_pop(r);

	for (size_t i = 0; i < t->count; i++)
		if (t->entries[i].mask == v && t->entries[i].len) {
			run_put(r, t->entries[i].text, t->entries[i].len);
			return;
		} else if (t->entries[i].mask == v) {
			break; /* an empty name counts as not found */
		}
	memcpy(r->w, "0x", 2);
	r->w = format_hex(r->w + 2, v);
	if (t->incomplete)
		*r->w++ = '?';
}

static void run_put_syscall_arg(struct run *r, const struct op *op)
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

static void run_deref(struct run *r, const struct op *op)
{
	const uint8_t *data = run_memory(r, run_pop(r), op->size);

	run_push(r,
		 data ? expr_normalize(load_uint(data, op->size, r->swap), op->size, op->is_signed)
		      : 0);
}

static void run_binary(struct run *r, const struct op *op)
{
	uint64_t b = run_pop(r), a = run_pop(r);

	run_push(r, expr_binary(op->arg, a, b, op->size, op->is_signed));
}

static void run_select(struct run *r)
{
	uint64_t b = run_pop(r), a = run_pop(r), c = run_pop(r);

	run_push(r, c ? a : b);
}

/* Follows _msecs of include/linux/jiffies.h: exact if HZ divides 1000 or is a multiple of it. */
static void run_msecs(struct run *r, const struct op *op)
{
	uint64_t j = run_pop(r), hz = op->imm;

	if (hz <= 1000 && 1000 % hz == 0)
		j *= 1000 / hz;
	else if (hz > 1000 && hz % 1000 == 0)
		j = (j + hz / 1000 - 1) / (hz / 1000);
	else
		j = j / hz * 1000 + (j % hz * 1000 + hz - 1) / hz;
	run_push(r, (uint32_t)j);
}

static int run_builtin(struct run *r, const struct op *op)
{
	int e = builtin_print((enum builtin)op->arg, r->p, r->p->event, r->rec, run_enter_buf(r));

	run_leave_buf(r);
	return e;
}

static void run_value(struct run *r, const struct op *op)
{
	switch (op->code) {
	case OP_DYNAMIC:
		run_push(r, run_dynamic_offset(r, op));
		break;
	case OP_DYNAMIC_LEN:
		run_push(r, run_dynamic_len(r, op));
		break;
	case OP_DEREF:
		run_deref(r, op);
		break;
	case OP_BINARY:
		run_binary(r, op);
		break;
	case OP_UNARY: {
		uint64_t v = run_pop(r);

		run_push(r, expr_normalize(op->arg == '-' ? 0 - v : ~v, op->size, op->is_signed));
		break;
	}
	case OP_NORMALIZE:
		run_push(r, expr_normalize(run_pop(r), op->size, op->is_signed));
		break;
	case OP_HIDE:
		run_push(r, printer_number(r->p, run_pop(r)));
		break;
	case OP_BOOL:
		run_push(r, run_pop(r) != 0);
		break;
	case OP_SELECT:
		run_select(r);
		break;
	case OP_MSECS:
		run_msecs(r, op);
		break;
	default:
		break;
	}
}

static inline void run_put_literal(struct run *r, const struct op *op)
{
	size_t n = op->text_len;

	/* Most literals are short: a copy of constant size is fast. */
	memcpy(r->w, op->text, OP_TEXT_SLACK);
	if (unlikely(n > OP_TEXT_SLACK))
		memcpy(r->w + OP_TEXT_SLACK, op->text + OP_TEXT_SLACK, n - OP_TEXT_SLACK);
	r->w += n;
}

static inline char *run_put_signed(char *w, int64_t v)
{
	if (v < 0) {
		*w++ = '-';
		return format_dec(w, 0 - (uint64_t)v);
	}
	return format_dec(w, (uint64_t)v);
}

__attribute__((always_inline)) static inline int program_execute(struct run *r, bool checked)
{
	const uint8_t *data = r->rec->data;
	const struct op *op = r->prog->ops;

	for (;; op++) {
		if (op->text_len)
			run_put_literal(r, op);
		if (checked && unlikely(op->need > r->rec->len)) {
			r->truncated = true;
			return 0;
		}
		/*
		 * Ops that `continue` have their room in the bound: they cannot run out of memory.
		 */
		switch (op->code) {
		case OP_END:
			return 0;
		case OP_NOTHING:
			continue;
		case OP_CONST:
			run_push(r, op->imm);
			continue;
		case OP_LOAD:
			run_push(r, expr_normalize(load_uint(data + op->offset, op->size, r->swap),
						   op->size, op->is_signed));
			continue;
		case OP_BINARY_IMM:
			if (likely(op->arg == '&'))
				r->stack[r->depth - 1] &= op->imm;
			else
				run_push(r, expr_binary(op->arg, run_pop(r), op->imm, op->size,
							op->is_signed));
			break;
		case OP_DEC_S32:
			r->w = run_put_signed(r->w,
					      (int32_t)load_uint(data + op->offset, 4, false));
			continue;
		case OP_DEC_U32:
			r->w = format_dec_u32(r->w,
					      (uint32_t)load_uint(data + op->offset, 4, false));
			continue;
		case OP_DEC_S64:
			r->w = run_put_signed(r->w,
					      (int64_t)load_uint(data + op->offset, 8, false));
			continue;
		case OP_DEC_U64:
			r->w = format_dec(r->w, load_uint(data + op->offset, 8, false));
			continue;
		case OP_HEX_U32:
			r->w = format_hex(r->w, load_uint(data + op->offset, 4, false));
			continue;
		case OP_HEX_U64:
			r->w = format_hex(r->w, load_uint(data + op->offset, 8, false));
			continue;
		case OP_DEC:
			r->w = op->is_signed ? run_put_signed(r->w, (int64_t)run_pop(r))
					     : format_dec(r->w, run_pop(r));
			continue;
		case OP_HEX:
			r->w = format_hex(r->w, run_pop(r));
			continue;
		case OP_STR_STATIC:
			run_put_string(r, op->offset);
			break;
		case OP_STR_DYNAMIC:
			run_put_string(r, run_dynamic_offset(r, op));
			break;
		case OP_STR_ADDRESS:
			run_put_string(r, run_pop(r));
			break;
		case OP_SYMBOLIC:
			run_put_symbolic(r, op);
			break;
		case OP_SYSCALL_ARG:
			run_put_syscall_arg(r, op);
			break;
		case OP_BUILTIN:
			return run_builtin(r, op);
		case OP_JUMP:
			op = r->prog->ops + op->offset - 1;
			break;
		case OP_JUMP_ZERO:
			if (!run_pop(r))
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

static uint64_t run_load_address(const struct printer *p, const struct record *rec,
				 const struct op *op, uint64_t offset)
{
	return load_uint(rec->data + offset, op->size, p->table->swap);
}

/*
 * Traces of the function tracer have more of its events than of all others: its program is one op.
 */
_hot_ static int run_function(const struct op *op, uint32_t bound, struct printer *p,
			      const struct record *rec, struct buf *out)
{
	char *w = buf_reserve(out, bound);
	uint64_t parent;

	if (unlikely(!w))
		return -ENOMEM;
	if (unlikely(rec->len < op->need)) {
		buf_puts(out, TRUNCATED);
		return buf_error(out) ?: -EBADMSG;
	}
	w = print_ip(p, w, run_load_address(p, rec, op, op->offset));
	/* Arguments follow the parent's address if func-args was on. */
	if (unlikely(op->arg && rec->len > op->need)) {
		out->len = (size_t)(w - out->data);
		print_arguments(p, run_load_address(p, rec, op, op->offset), rec->data + op->need,
				(rec->len - op->need) / op->size, out);
		w = buf_reserve(out, bound);
		if (!w)
			return -ENOMEM;
	}
	parent = run_load_address(p, rec, op, op->imm);
	if (likely(parent && !p->table->env.text.no_parent)) {
		memcpy(w, " <-", 3);
		w = print_ip(p, w + 3, parent);
	}
	out->len = (size_t)(w - out->data);
	return 0;
}

/* Marks the missing rest. Writes the event's name first if the output lacks it. */
_cold_ static void run_put_truncated(struct run *r, size_t from)
{
	if (r->prog->name_len && (size_t)(r->w - r->out->data) == from) {
		run_put(r, r->prog->name, strlen(r->prog->name));
		run_put(r, ": ", 2);
	}
	run_put(r, TRUNCATED, strlen(TRUNCATED));
}

int program_run(const struct program *prog, struct printer *p, const struct record *rec,
		struct buf *out)
{
	size_t from = out->len;
	struct run r;
	int e;

	if (prog->ops->code == OP_FUNCTION)
		return run_function(prog->ops, prog->bound, p, rec, out);
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
	e = likely(rec->len >= prog->need) ? program_execute(&r, false) : program_execute(&r, true);
	if (r.no_memory || e == -ENOMEM)
		return -ENOMEM;
	if (r.truncated || e == -EBADMSG)
		run_put_truncated(&r, from);
	out->len = (size_t)(r.w - out->data);
	return r.truncated ? -EBADMSG : e;
}
