/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The arguments of a print fmt as typed expressions: C as far as the kernel's
 * TP_printk() uses it, with the recorded machine's word size. Every node knows
 * its width and signedness, constants are folded while parsing.
 */
#pragma once

#include "print/constants.h"
#include "print/event_table.h"

enum type_class {
	TYPE_INT,
	TYPE_POINTER, /* an address of the recorded machine */
	TYPE_RECORD,  /* an address within the record, kept as offset */
	TYPE_TEXT,    /* a string that the expression makes or names */
};

struct expr_type {
	enum type_class class;
	uint8_t size; /* bytes of the value; of an element for TYPE_RECORD */
	bool is_signed;
	uint16_t scale; /* of TYPE_POINTER: bytes that + 1 goes; 0: not known */
};

enum expr_kind {
	EXPR_CONST,   /* value */
	EXPR_STRING,  /* text */
	EXPR_FIELD,   /* an integer or pointer field */
	EXPR_ARRAY,   /* a static array field, or the address of a field */
	EXPR_DYNAMIC, /* the data of a dynamic array */
	EXPR_DYNAMIC_LEN,
	EXPR_LOAD,   /* what a points to, in the record */
	EXPR_UNARY,  /* op: - ~ ! */
	EXPR_BINARY, /* op */
	EXPR_CAST,
	EXPR_BOOL,	/* a != 0 */
	EXPR_COND,	/* a ? b : c */
	EXPR_SYMBOLIC,	/* __print_symbolic(a, table) */
	EXPR_FLAGS,	/* __print_flags(a, table) */
	EXPR_HEX,	/* a: address, b: length; value: bytes run together */
	EXPR_INT_ARRAY, /* a: address, b: count, c: element size */
	EXPR_HEX_DUMP,	/* a: address, b: length, value: index of the dump's form */
	EXPR_BITMASK,	/* a: address, b: length in bytes */
	EXPR_STACK,	/* a: address, b: length: one symbol a line */
	EXPR_SELECT,	/* table[a]: one of several strings */
	EXPR_FORMAT,	/* text and list: a format with arguments of its own */
	EXPR_MSECS,	/* jiffies_to_msecs(a) */
	EXPR_UNKNOWN,	/* text: what user space can't know */
};

/* Ops beyond single characters. */
enum expr_op { OP_SHL = 128, OP_SHR, OP_LE, OP_GE, OP_EQ, OP_NE, OP_LAND, OP_LOR };

struct name_table {
	size_t count;
	struct name_entry {
		uint64_t mask;
		const char *text;
		uint32_t len;
	} * entries;
	const char *delim; /* of flags */
	uint32_t delim_len;
	uint32_t longest; /* bytes that one entry takes */
	bool wide;	  /* compares 64 bits whatever the word size */
	bool incomplete;  /* some value in it is not known: misses are marked */
};

/* In value of EXPR_LOAD, EXPR_UNARY and EXPR_BINARY: the size that op works with, and */
#define EXPR_SIGNED 256

struct expr {
	enum expr_kind kind;
	struct expr_type type;
	int op;
	uint64_t value;
	const struct field *field;
	const char *text;
	uint32_t text_len;
	struct name_table *table;
	struct expr *a, *b, *c;
	struct expr *next; /* in a list of arguments */
};

/* Memory that lives as long as the programs that are made of it. */
struct arena {
	struct arena_chunk *chunks;
	bool failed; /* there was no memory, once */
};
void *arena_alloc(struct arena *a, size_t size); /* zeroed; NULL: no memory */
char *arena_strndup(struct arena *a, const char *s, size_t len);
void arena_deinit(struct arena *a);

struct expr_env {
	const struct event *event;
	const struct constants *constants;
	struct arena *arena;
	unsigned word_size;
};

/*
 * Parses what a format file says after "print fmt:": string literals joined
 * in *ret_format, the arguments as a list. -EBADMSG: that is no C; -EOPNOTSUPP: it is, but can't be
 * compiled; *ret_why tells (lives in the arena).
 */
int expr_parse_print_fmt(const struct expr_env *env, const char *text, size_t len,
			 struct expr **ret_format, struct expr **ret_args, const char **ret_why);

/* The value of op on canonical operands: sign- or zero-extended to 64 bits as their type says. */
uint64_t expr_normalize(uint64_t v, unsigned size, bool is_signed);
uint64_t expr_binary(int op, uint64_t a, uint64_t b, unsigned size, bool is_signed);
bool expr_is_comparison(int op);
/* Whether some part of it is not to be known. */
const struct expr *expr_unknown_part(const struct expr *e);

/* C type names: false if it isn't known. */
bool expr_type_by_name(const char *name, size_t len, unsigned word_size, struct expr_type *ret);
