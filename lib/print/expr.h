/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The arguments of a print fmt as typed expressions: the part of C that the kernel's TP_printk()
 * uses, with the recorded machine's word size. Every node has a width and a signedness. The parser
 * folds constants.
 */
#pragma once

#include "print/constants.h"
#include "print/event_table.h"

enum type_class {
	TYPE_INT,
	TYPE_POINTER, /* an address on the recorded machine */
	TYPE_RECORD,  /* an address within the record, stored as offset */
	TYPE_TEXT,    /* a string */
};

struct expr_type {
	enum type_class class;
	uint8_t size; /* bytes of the value; for TYPE_RECORD of one element */
	bool is_signed;
	uint16_t scale; /* for TYPE_POINTER: bytes that + 1 adds; 0: unknown */
};

enum expr_kind {
	EXPR_CONST,   /* value */
	EXPR_STRING,  /* text */
	EXPR_FIELD,   /* an integer or pointer field */
	EXPR_ARRAY,   /* a static array field, or the address of a field */
	EXPR_DYNAMIC, /* the data of a dynamic array */
	EXPR_DYNAMIC_LEN,
	EXPR_LOAD,   /* the memory in the record that a points to */
	EXPR_UNARY,  /* op: - ~ ! */
	EXPR_BINARY, /* op */
	EXPR_CAST,
	EXPR_BOOL,	/* a != 0 */
	EXPR_COND,	/* a ? b : c */
	EXPR_SYMBOLIC,	/* __print_symbolic(a, table) */
	EXPR_FLAGS,	/* __print_flags(a, table) */
	EXPR_HEX,	/* a: address, b: length; value: no spaces between the bytes */
	EXPR_INT_ARRAY, /* a: address, b: count, c: element size */
	EXPR_BITMASK,	/* a: address, b: length in bytes */
	EXPR_STACK,	/* a: address, b: length; one symbol per line */
	EXPR_SELECT,	/* table[a]: one of its strings */
	EXPR_FORMAT,	/* text and list: a nested format with its arguments */
	EXPR_MSECS,	/* jiffies_to_msecs(a) */
	EXPR_UNKNOWN,	/* a value that user space cannot know */
};

/* Operators that are not a single character. */
enum expr_op { OP_SHL = 128, OP_SHR, OP_LE, OP_GE, OP_EQ, OP_NE, OP_LAND, OP_LOR };

struct name_table {
	size_t count;
	struct name_entry {
		uint64_t mask;
		const char *text;
		uint32_t len;
	} * entries;
	const char *delim; /* delimiter of flags */
	uint32_t delim_len;
	uint32_t longest; /* length of the longest entry */
	bool wide;	  /* compare 64 bits even on 32-bit machines */
	bool incomplete;  /* some value is unknown: values not found are marked */
};

/* Set in the value of EXPR_LOAD, EXPR_UNARY and EXPR_BINARY, beside the operand size: signed. */
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
	struct expr *next; /* in an argument list */
};

/* Memory with the lifetime of the compiled programs. */
struct arena {
	struct arena_chunk *chunks;
	bool failed; /* an allocation failed */
};
void *arena_alloc(struct arena *a, size_t size); /* zeroed; NULL: out of memory */
char *arena_strndup(struct arena *a, const char *s, size_t len);
void arena_deinit(struct arena *a);

struct expr_env {
	const struct event *event;
	const struct constants *constants;
	struct arena *arena;
	unsigned word_size;
};

/*
 * Parses the text after "print fmt:" in a format file. *ret_format gets the joined string literals,
 * *ret_args the list of arguments. -EBADMSG: not valid C. -EOPNOTSUPP: valid, but it cannot be
 * compiled. *ret_why gets the reason, in the arena.
 */
int expr_parse_print_fmt(const struct expr_env *env, const char *text, size_t len,
			 struct expr **ret_format, struct expr **ret_args, const char **ret_why);

/* Both work on 64-bit values that are sign- or zero-extended from their type. */
uint64_t expr_normalize(uint64_t v, unsigned size, bool is_signed);
uint64_t expr_binary(int op, uint64_t a, uint64_t b, unsigned size, bool is_signed);
bool expr_is_comparison(int op);
/* True if e depends on a value that user space cannot know. NULL: false. */
bool expr_is_unknown(const struct expr *e);

/* Finds a C type by name. False: unknown. */
bool expr_type_by_name(const char *name, size_t len, unsigned word_size, struct expr_type *ret);
