/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/plain.h"
#include "print/compile.h"

static bool name_table_is_plain(const struct name_table *t)
{
	for (size_t i = 0; i < t->count; i++)
		if (!is_plain(t->entries[i].text, t->entries[i].len))
			return false;
	return !t->delim_len || is_plain(t->delim, t->delim_len);
}

/* An op that prints strings of the record or of the kernel's symbols can print any byte. */
static bool op_is_plain(const struct op *op)
{
	if (op->text_len && !is_plain(op->text, op->text_len))
		return false;
	switch (op->code) {
	case OP_END ... OP_NUMBER:
	case OP_BYTES:
	case OP_INT_ARRAY:
	case OP_BITMASK:
	case OP_POINTER:
	case OP_JUMP:
	case OP_JUMP_ZERO:
	case OP_MARK:
	case OP_PAD:
		return true;
	case OP_SYMBOLIC:
	case OP_FLAGS:
	case OP_NAME:
		return name_table_is_plain(op->table);
	default:
		return false;
	}
}

bool ops_are_plain(const struct op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!op_is_plain(&ops[i]))
			return false;
	return true;
}
