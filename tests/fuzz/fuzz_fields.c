/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The head of an event's format file: name, number, fields. Byte 0: the word size. The rest: the
 * text before "print fmt:".
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "print/expr.h"
#include "print/format_fields.h"

/* Each field is complete and consistent. */
static void check(const struct field *fields, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct field *f = &fields[i];

		if (!strlen(f->name) || !strlen(f->type) || f->offset + f->size < f->offset ||
		    (f->is_relative && !f->is_dynamic) || (f->is_array && f->is_dynamic) ||
		    (f->is_array && f->size && f->element_size > f->size && f->element_size > 8))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = { 0 };
	struct format_head head;
	char *text;
	int r;

	if (size < 2 || size > 64 << 10)
		return 0;
	/* A block of its own, so that a sanitizer sees reads beyond it. */
	text = malloc(size - 1);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	r = format_head_parse(&head, text, size - 1, data[0] & 1 ? 4 : 8, &arena);
	free(text);
	if (r == 0) {
		if (!strlen(head.name))
			abort();
		check(head.common, head.common_count);
		check(head.fields, head.field_count);
	} else if (r != -EBADMSG && r != -ERANGE && r != -ENOMEM) {
		abort();
	}
	arena_deinit(&arena);
	return 0;
}
