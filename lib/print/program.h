/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The straight-line program that prints one event: a list of ops, each of
 * which first appends its literal, then does its own work. Values are kept on
 * a small stack, extended to 64 bits; strings are never values: they are
 * written to the output at once, and padded or cut there (OP_MARK, OP_PAD).
 * The only jumps are forward, over the branches of a string-valued ?:.
 */
#pragma once

#include "print/conversion.h"
#include "print/expr.h"

enum op_code {
	OP_END,
	OP_NOTHING, /* the literal alone */

	/* Values. */
	OP_CONST,   /* imm */
	OP_LOAD,    /* a field */
	OP_DYNAMIC, /* where a dynamic array's data lies, relative to imm */
	OP_DYNAMIC_LEN,
	OP_DEREF,      /* address -> value */
	OP_BINARY,     /* arg: the operator */
	OP_BINARY_IMM, /* the same with imm on the right */
	OP_UNARY,
	OP_NORMALIZE,
	OP_BOOL,
	OP_SELECT, /* c, a, b -> c ? a : b */
	OP_MSECS,  /* imm: HZ */

	/* Text. */
	OP_DEC, /* a value as it is, by is_signed */
	OP_HEX,
	OP_DEC_S32, /* fields in this machine's byte order */
	OP_DEC_U32,
	OP_DEC_S64,
	OP_DEC_U64,
	OP_HEX_U32,
	OP_HEX_U64,
	OP_NUMBER, /* a value by spec; arg: stars, their values on top */
	OP_CHAR,
	OP_STR_STATIC, /* from the record to the first NUL */
	OP_STR_ADDRESS,
	OP_STR_DYNAMIC,
	OP_STR_POINTER, /* of the recorded kernel: its printk formats are known, nothing else */
	OP_SYMBOLIC,
	OP_FLAGS,
	OP_NAME,      /* one of table by its index */
	OP_BYTES,     /* address, length; imm: run together */
	OP_INT_ARRAY, /* address, count, element size */
	OP_BITMASK,   /* address, bytes */
	OP_STACK,     /* address, bytes */
	OP_POINTER,   /* %p */
	OP_SYMBOL, /* %ps, %pS, %pB by arg; 'f', 'F': as ftrace's own events, with offset for 'F' */
	OP_OBJECT, /* what %p<suffix> prints of the memory at an address */
	OP_SYSCALL_ARG,
	OP_SYSCALL_BYTES,
	OP_SYSCALL_TEXT,
	OP_FUNCTION, /* alone: the function tracer's ip, its parent's at imm; arg: arguments may
			follow */
	OP_BUILTIN,  /* another of ftrace's own events */

	OP_JUMP,
	OP_JUMP_ZERO,
	OP_MARK, /* slot arg: where the text that follows begins */
	OP_PAD,	 /* the text since slot arg, cut and padded by spec */
	OP_CUT,	 /* ends the text since slot arg at its first NUL */
	OP_UNKNOWN,
};

struct op {
	uint8_t code, size, arg;
	bool is_signed;
	uint16_t text_len; /* of the literal before it */
	uint16_t stars;	   /* OP_STAR_* */
	const char *text;  /* OP_TEXT_SLACK bytes behind it can be read */
	union {
		uint64_t imm;
		const struct name_table *table;
		const struct conversion *spec;
	};
	uint32_t offset; /* in the record; of jumps: the op's index */
	uint32_t need;	 /* bytes that the record must have for this op */
};

#define OP_TEXT_SLACK 32
#define OP_SHORT_STRING 16 /* strings up to this long are in the bound */
#define OP_STACK_MAX 32
#define OP_SLOTS 8
enum { OP_STAR_WIDTH = 1, OP_STAR_PRECISION = 2 };

struct program {
	struct op *ops;
	size_t count;
	uint32_t need;	  /* a record that long needs no checks for its static fields */
	uint32_t bound;	  /* bytes that all ops of known size append */
	const char *name; /* of the event; borrowed */
	/* Bytes of "NAME: ", which all that it prints begins with; 0: that has another form. */
	uint32_t name_len;
	bool plain;	     /* so is all that it prints, its name included (base/plain.h) */
	const char *unknown; /* NULL, or the first name in it that user space can't know */
};

struct compile_env {
	struct expr_env expr;
	bool big_endian;
	uint32_t kernel; /* (major << 16) | minor */
};

/*
 * Compiles an event's print fmt; everything made lives in the arena.
 * -EBADMSG, -EOPNOTSUPP as expr_parse_print_fmt(); *ret_why tells. -ENOMEM.
 */
int program_compile(const struct compile_env *env, const char *print_fmt, size_t len,
		    const struct program **ret, const char **ret_why);

/* Appends. 0, -EBADMSG for a record that ends too early, -ENOMEM. */
int program_run(const struct program *prog, struct printer *p, const struct record *rec,
		struct buf *out);
