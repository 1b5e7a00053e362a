/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* C types that print formats cast to, arithmetic on them, and the arena. */
#include <string.h>

#include "print/expr.h"

#define WORD 0 /* the size of a long */

/* Kernel typedefs. char is unsigned since Linux 6.2; earlier formats have no negative char. */
static const struct {
	const char *name;
	uint8_t size;
	bool is_signed;
} types[] = {
	{ "int", 4, true },
	{ "unsigned", 4, false },
	{ "uint", 4, false },
	{ "long", WORD, true },
	{ "ulong", WORD, false },
	{ "short", 2, true },
	{ "ushort", 2, false },
	{ "char", 1, false },
	{ "u8", 1, false },
	{ "u16", 2, false },
	{ "u32", 4, false },
	{ "u64", 8, false },
	{ "s8", 1, true },
	{ "s16", 2, true },
	{ "s32", 4, true },
	{ "s64", 8, true },
	{ "__u8", 1, false },
	{ "__u16", 2, false },
	{ "__u32", 4, false },
	{ "__u64", 8, false },
	{ "__s8", 1, true },
	{ "__s16", 2, true },
	{ "__s32", 4, true },
	{ "__s64", 8, true },
	{ "uint8_t", 1, false },
	{ "uint16_t", 2, false },
	{ "uint32_t", 4, false },
	{ "uint64_t", 8, false },
	{ "int8_t", 1, true },
	{ "int16_t", 2, true },
	{ "int32_t", 4, true },
	{ "int64_t", 8, true },
	{ "__le16", 2, false },
	{ "__le32", 4, false },
	{ "__le64", 8, false },
	{ "__be16", 2, false },
	{ "__be32", 4, false },
	{ "__be64", 8, false },
	{ "size_t", WORD, false },
	{ "ssize_t", WORD, true },
	{ "uintptr_t", WORD, false },
	{ "ptrdiff_t", WORD, true },
	{ "loff_t", 8, true },
	{ "off_t", WORD, true },
	{ "sector_t", 8, false },
	{ "blkcnt_t", 8, false },
	{ "ino_t", WORD, false },
	{ "dev_t", 4, false },
	{ "umode_t", 2, false },
	{ "fmode_t", 4, false },
	{ "uid_t", 4, false },
	{ "gid_t", 4, false },
	{ "pid_t", 4, true },
	{ "gfp_t", 4, false },
	{ "OM_uint32", 4, false }, /* of GSS-API, in kernels before 5.14 */
	{ "slab_flags_t", 4, false },
	{ "vm_fault_t", 4, false },
	{ "vm_flags_t", WORD, false },
	{ "blk_opf_t", 4, false },
	{ "blk_mode_t", 4, false },
	{ "__kernel_rwf_t", 4, true },
	{ "rwf_t", 4, true },
	{ "ktime_t", 8, true },
	{ "time64_t", 8, true },
	{ "pgoff_t", WORD, false },
	{ "dma_addr_t", 8, false },
	{ "phys_addr_t", 8, false },
	{ "resource_size_t", 8, false },
	{ "gpa_t", 8, false },
	{ "gfn_t", 8, false },
	{ "hpa_t", 8, false },
	{ "gva_t", WORD, false },
	{ "xfs_ino_t", 8, false },
	{ "xfs_daddr_t", 8, true },
	{ "isolate_mode_t", 4, false },
	{ "acpi_status", 4, false },
	{ "bool", 1, false },
	{ "_Bool", 1, false },
};

bool expr_type_by_name(const char *name, size_t len, unsigned word_size, struct expr_type *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i].name) == len && !memcmp(types[i].name, name, len)) {
			*ret = (struct expr_type){
				.class = TYPE_INT,
				.size = types[i].size == WORD ? (uint8_t)word_size : types[i].size,
				.is_signed = types[i].is_signed,
			};
			return true;
		}
	return false;
}

uint64_t expr_normalize(uint64_t v, unsigned size, bool is_signed)
{
	switch (size) {
	case 1:
		return is_signed ? (uint64_t)(int64_t)(int8_t)v : (uint8_t)v;
	case 2:
		return is_signed ? (uint64_t)(int64_t)(int16_t)v : (uint16_t)v;
	case 4:
		return is_signed ? (uint64_t)(int64_t)(int32_t)v : (uint32_t)v;
	default:
		return v;
	}
}

bool expr_is_comparison(int op)
{
	return op == '<' || op == '>' || (op >= OP_LE && op <= OP_LOR);
}

static uint64_t expr_divide(int op, uint64_t a, uint64_t b, bool is_signed)
{
	if (!b)
		return 0;
	if (!is_signed)
		return op == '/' ? a / b : a % b;
	if (b == UINT64_MAX) /* INT64_MIN / -1 */
		return op == '/' ? 0 - a : 0;
	return op == '/' ? (uint64_t)((int64_t)a / (int64_t)b)
			 : (uint64_t)((int64_t)a % (int64_t)b);
}

static bool expr_less(uint64_t a, uint64_t b, bool is_signed)
{
	return is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t expr_arithmetic(int op, uint64_t a, uint64_t b, unsigned size, bool is_signed)
{
	unsigned shift = (unsigned)b & (size == 8 ? 63 : 31);

	switch (op) {
	case '+':
		return a + b;
	case '-':
		return a - b;
	case '*':
		return a * b;
	case '/':
	case '%':
		return expr_divide(op, a, b, is_signed);
	case '&':
		return a & b;
	case '|':
		return a | b;
	case '^':
		return a ^ b;
	case OP_SHL:
		return a << shift;
	default:
		return is_signed ? (uint64_t)((int64_t)a >> shift) : a >> shift;
	}
}

uint64_t expr_binary(int op, uint64_t a, uint64_t b, unsigned size, bool is_signed)
{
	switch (op) {
	case '<':
		return expr_less(a, b, is_signed);
	case '>':
		return expr_less(b, a, is_signed);
	case OP_LE:
		return !expr_less(b, a, is_signed);
	case OP_GE:
		return !expr_less(a, b, is_signed);
	case OP_EQ:
		return a == b;
	case OP_NE:
		return a != b;
	case OP_LAND:
		return a && b;
	case OP_LOR:
		return a || b;
	default:
		return expr_normalize(expr_arithmetic(op, a, b, size, is_signed), size, is_signed);
	}
}

bool expr_is_unknown(const struct expr *e)
{
	return e && (e->kind == EXPR_UNKNOWN || expr_is_unknown(e->a) || expr_is_unknown(e->b) ||
		     expr_is_unknown(e->c));
}

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, size;
	uint64_t data[];
};

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_chunk *c = a->chunks;
	void *p;

	size = (size + 7) & ~(size_t)7;
	if (!c || c->size - c->used < size) {
		size_t room = MAX(size, (size_t)60 << 10);

		c = calloc(1, sizeof(*c) + room);
		if (!c) {
			a->failed = true;
			return NULL;
		}
		c->size = room;
		c->next = a->chunks;
		a->chunks = c;
	}
	p = (char *)c->data + c->used;
	c->used += size;
	return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *p = arena_alloc(a, len + 1);

	if (p)
		memcpy(p, s, len);
	return p;
}

void arena_deinit(struct arena *a)
{
	for (struct arena_chunk *next; a->chunks; a->chunks = next) {
		next = a->chunks->next;
		free(a->chunks);
	}
}
