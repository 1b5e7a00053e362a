/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A straight-line program that prints one event: a list of ops. Each op appends its literal, then
 * does its own work. Numbers are on a small stack, extended to 64 bits. Strings are never on it:
 * ops write them to the output at once, and cut or pad them there (OP_MARK, OP_PAD). Jumps only go
 * forward, over the branches of a string-valued ?:.
 */
#pragma once

#include "print/conversion.h"
#include "print/expr.h"

enum op_code {
	OP_END,
	OP_NOTHING, /* only appends its literal */

	/* Values. */
	OP_CONST,   /* imm */
	OP_LOAD,    /* a field */
	OP_DYNAMIC, /* offset of a dynamic array's data, relative to imm */
	OP_DYNAMIC_LEN,
	OP_DEREF,      /* address -> value */
	OP_BINARY,     /* arg: the operator */
	OP_BINARY_IMM, /* the same with imm on the right */
	OP_UNARY,
	OP_NORMALIZE,
	OP_HIDE, /* a number that may be a kernel address */
	OP_BOOL,
	OP_SELECT, /* c, a, b -> c ? a : b */
	OP_MSECS,  /* imm: HZ */

	/* Text. */
	OP_DEC, /* a value in decimal, by is_signed */
	OP_HEX,
	OP_DEC_S32, /* the next six: fields in this machine's byte order */
	OP_DEC_U32,
	OP_DEC_S64,
	OP_DEC_U64,
	OP_HEX_U32,
	OP_HEX_U64,
	OP_NUMBER, /* a value by spec; arg: stars, whose values are on top */
	OP_CHAR,
	OP_STR_STATIC, /* from the record, to the first NUL */
	OP_STR_ADDRESS,
	OP_STR_DYNAMIC,
	OP_STR_POINTER, /* a kernel address: only printk formats are known */
	OP_SYMBOLIC,
	OP_FLAGS,
	OP_NAME,      /* an entry of table, by index */
	OP_BYTES,     /* address, length; imm: no spaces between bytes */
	OP_INT_ARRAY, /* address, count, element size */
	OP_BITMASK,   /* address, bytes */
	OP_STACK,     /* address, bytes */
	OP_POINTER,   /* %p */
	OP_SYMBOL, /* %ps, %pS, %pB by arg; 'f', 'F': as in ftrace's own events, 'F' with offset */
	OP_OBJECT, /* %p<suffix> of the memory at an address */
	OP_SYSCALL_ARG,
	OP_SYSCALL_BYTES,
	OP_SYSCALL_TEXT,
	OP_USER_TEXT, /* a string of a user event, with its bytes if some are not printable */
	OP_USER_BYTE, /* a number of one byte */
	OP_FUNCTION,  /* the whole program: the function tracer's ip; imm: the parent's offset;
		       * arg: arguments may follow */
	OP_BUILTIN,   /* another of ftrace's own events */

	OP_JUMP,
	OP_JUMP_ZERO,
	OP_MARK, /* slot arg: the next text begins here */
	OP_PAD,	 /* cuts and pads the text since slot arg by spec */
	OP_CUT,	 /* ends the text since slot arg at its first NUL */
	OP_UNKNOWN,
};

struct op {
	uint8_t code, size, arg;
	bool is_signed;
	uint16_t text_len; /* length of the literal */
	uint16_t stars;	   /* OP_STAR_* */
	const char *text;  /* readable for OP_TEXT_SLACK bytes past its end */
	union {
		uint64_t imm;
		const struct name_table *table;
		const struct conversion *spec;
	};
	uint32_t offset; /* in the record; for jumps: index of the target op */
	uint32_t need;	 /* bytes of the record that this op reads up to */
};

#define OP_TEXT_SLACK 32
#define OP_SHORT_STRING 16 /* longer strings are not in the bound */
#define OP_STACK_MAX 32
#define OP_SLOTS 8
enum { OP_STAR_WIDTH = 1, OP_STAR_PRECISION = 2 };

struct program {
	struct op *ops;
	size_t count;
	uint32_t need;	  /* a record this long needs no bounds checks for static fields */
	uint32_t bound;	  /* bytes that all ops of known size append at most */
	const char *name; /* the event's; borrowed */
	/* Length of "NAME: " if all output begins with it; otherwise 0. */
	uint32_t name_len;
	bool plain; /* all output is plain, the name included (base/plain.h) */
};

struct compile_env {
	struct expr_env expr;
	bool big_endian;
	uint32_t kernel; /* (major << 16) | minor */
};

/*
 * Compiles an event's print fmt into the arena. -EBADMSG, -EOPNOTSUPP: as for
 * expr_parse_print_fmt(); *ret_why gets the reason. -ENOMEM.
 */
int program_compile(const struct compile_env *env, const char *print_fmt, size_t len,
		    const struct program **ret, const char **ret_why);

/* Appends. Returns 0, -ENOMEM, or -EBADMSG if the record is too short. */
int program_run(const struct program *prog, struct printer *p, const struct record *rec,
		struct buf *out);
