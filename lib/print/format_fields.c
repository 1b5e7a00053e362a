/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/format_fields.h"

#include <ctype.h>
#include <string.h>

#include "print/expr.h"

#define FIELDS_MAX 512		/* per event; the readers' own bound is far lower */
#define FIELD_END_MAX (1 << 20) /* bytes; more than the longest record */

struct format_parser {
	const char *p, *end;
	unsigned word_size;
	struct arena *arena;
	struct buf type; /* type of the field being read */
};

struct word {
	const char *text;
	size_t len;
};

static void format_skip_blanks(struct format_parser *x)
{
	while (x->p < x->end && (*x->p == ' ' || *x->p == '\t'))
		x->p++;
}

static bool format_skip(struct format_parser *x, const char *what)
{
	size_t len = strlen(what);

	format_skip_blanks(x);
	if ((size_t)(x->end - x->p) < len || memcmp(x->p, what, len) != 0)
		return false;
	x->p += len;
	return true;
}

/* Reads letters, digits and '_': an identifier or a number. */
static bool format_take_word(struct format_parser *x, struct word *ret)
{
	format_skip_blanks(x);
	ret->text = x->p;
	while (x->p < x->end && (isalnum((unsigned char)*x->p) || *x->p == '_'))
		x->p++;
	ret->len = (size_t)(x->p - ret->text);
	return ret->len > 0;
}

static bool format_take_number(struct format_parser *x, const char *label, uint32_t *ret)
{
	const char *first;
	uint32_t n = 0;

	if (!format_skip(x, label))
		return false;
	format_skip_blanks(x);
	first = x->p;
	for (; x->p < x->end && *x->p >= '0' && *x->p <= '9'; x->p++)
		if (__builtin_mul_overflow(n, 10U, &n) ||
		    __builtin_add_overflow(n, (uint32_t)(*x->p - '0'), &n))
			return false;
	*ret = n;
	return x->p > first;
}

static unsigned format_digit_value(char c)
{
	unsigned d = (unsigned)c - '0';

	return d > 9 ? ((unsigned)c | 0x20) - 'a' + 10 : d;
}

/* Parses a C number: "16", "0x10", "16U". 0: not a number. */
static uint32_t format_word_number(const struct word *w)
{
	bool is_hex = w->len > 2 && w->text[0] == '0' && (w->text[1] | 0x20) == 'x';
	unsigned base = is_hex ? 16 : w->len && w->text[0] == '0' ? 8 : 10;
	size_t i = is_hex ? 2 : 0;
	uint32_t n = 0;

	for (; i < w->len && format_digit_value(w->text[i]) < base; i++)
		if (__builtin_mul_overflow(n, base, &n) ||
		    __builtin_add_overflow(n, format_digit_value(w->text[i]), &n))
			return 0;
	for (; i < w->len; i++)
		if (!memchr("uUlL", w->text[i], 4))
			return 0;
	return n;
}

/* Kernels built by clang have "__attribute__((user))" after a type. */
static bool format_skip_attribute(struct format_parser *x)
{
	unsigned depth = 0;

	format_skip_blanks(x);
	for (; x->p < x->end && *x->p != '\n'; x->p++) {
		depth += *x->p == '(';
		if (!depth)
			return false;
		depth -= *x->p == ')';
		if (!depth) {
			x->p++;
			return true;
		}
	}
	return false;
}

static void format_put_word(struct buf *type, const struct word *w)
{
	if (type->len)
		buf_putc(type, ' ');
	buf_append(type, w->text, w->len);
}

/* Reads "unsigned int" or "void *". The next word is the name, or the element of an open array. */
static bool format_take_type(struct format_parser *x, struct field *f, struct word *ret_last)
{
	static const char attribute[] = "__attribute__";
	struct word last, next;
	bool has_type = false;

	if (!format_take_word(x, &last))
		return false;
	for (;;) {
		if (format_skip(x, "*"))
			next = (struct word){ "*", 1 };
		else if (!format_take_word(x, &next))
			break;
		if (next.len == strlen(attribute) && !memcmp(next.text, attribute, next.len)) {
			if (!format_skip_attribute(x))
				return false;
			continue;
		}
		f->is_pointer |= *next.text == '*';
		format_put_word(&x->type, &last);
		has_type = true;
		last = next;
	}
	*ret_last = last;
	return has_type && *last.text != '*';
}

/* Reads up to the closing bracket: "16", "TASK_COMM_LEN", "sizeof(struct sockaddr_in6)". */
static bool format_take_count(struct format_parser *x, struct word *ret)
{
	const char *end = memchr(x->p, ']', (size_t)(x->end - x->p));

	if (!end)
		return false;
	*ret = (struct word){ x->p, (size_t)(end - x->p) };
	x->p = end + 1;
	for (const char *p = ret->text; p < end; p++)
		if (!isprint((unsigned char)*p))
			return false;
	return true;
}

/*
 * Reads "TYPE NAME;", "TYPE NAME[COUNT];" or "TYPE[] NAME;". The last gets the type "TYPE[COUNT]".
 */
static bool format_take_declaration(struct format_parser *x, struct field *f, uint32_t *ret_count)
{
	struct word name, count, behind;

	*ret_count = 0;
	if (!format_take_type(x, f, &name))
		return false;
	if (format_skip(x, "[")) {
		f->is_array = true;
		if (!format_take_count(x, &count))
			return false;
		*ret_count = format_word_number(&count);
		if (format_take_word(x, &behind)) {
			format_put_word(&x->type, &name);
			name = behind;
		}
		buf_printf(&x->type, "[%.*s]", (int)count.len, count.text);
	}
	f->name = arena_strndup(x->arena, name.text, name.len);
	f->type = buf_string(&x->type) ? arena_strndup(x->arena, x->type.data, x->type.len) : NULL;
	return format_skip(x, ";");
}

/* Size of an array's elements by their type; 0: unknown. */
static uint32_t field_element_size(const char *type, unsigned word_size)
{
	struct expr_type known;

	if (!strncmp(type, "__data_loc ", 11) || !strncmp(type, "__rel_loc ", 10))
		type = strchr(type, ' ') + 1;
	if (!strncmp(type, "unsigned ", 9) && type[9] != '[')
		type += 9;
	return expr_type_by_name(type, strcspn(type, "["), word_size, &known) ? known.size : 0;
}

/* Derives properties from the type, as libtraceevent does. count: array elements, 0: unknown. */
static void field_fill_kind(const struct format_parser *x, struct field *f, uint32_t count)
{
	f->is_relative = !strncmp(f->type, "__rel_loc", 9);
	f->is_dynamic = f->is_relative || !strncmp(f->type, "__data_loc", 10);
	f->is_string = f->is_array &&
		       (strstr(f->type, "char") || strstr(f->type, "u8") || strstr(f->type, "s8"));
	/* Linux 2.6 had offsets without lengths, for strings only. */
	f->is_string |= f->is_dynamic && f->size == 2;
	/* User events' counts are memory that the kernel has not set (seen in Linux 6.12). */
	f->element_size = field_element_size(f->type, x->word_size);
	if (!f->is_array && !f->is_dynamic)
		f->element_size = f->size;
	else if (!f->element_size || (!f->is_dynamic && f->size % f->element_size))
		f->element_size = !f->is_dynamic && f->size && count && f->size % count == 0
					  ? f->size / count
					  : 1;
	/* A dynamic field holds the array's location. */
	f->is_array &= !f->is_dynamic;
}

/* Reads the text after "field:". */
static int format_take_field(struct format_parser *x, struct field *ret)
{
	struct field f = { 0 };
	uint32_t count, is_signed;

	buf_clear(&x->type);
	if (!format_take_declaration(x, &f, &count) ||
	    !format_take_number(x, "offset:", &f.offset) || !format_skip(x, ";") ||
	    !format_take_number(x, "size:", &f.size) || !format_skip(x, ";"))
		return -EBADMSG;
	if (!f.name || !f.type)
		return -ENOMEM;
	/* Since Linux 2.6.31. */
	if (format_take_number(x, "signed:", &is_signed)) {
		f.is_signed = is_signed;
		if (!format_skip(x, ";"))
			return -EBADMSG;
	}
	if (!format_skip(x, "\n"))
		return -EBADMSG;
	/* No record is that long. The bound also keeps the sum from overflowing. */
	if (f.offset > FIELD_END_MAX || f.size > FIELD_END_MAX - f.offset)
		return -ERANGE;
	field_fill_kind(x, &f, count);
	*ret = f;
	return 0;
}

/* Reads fields up to an empty line or the end. */
static int format_take_fields(struct format_parser *x, struct field *fields, size_t *count,
			      size_t *ret_here)
{
	size_t before = *count;

	while (!format_skip(x, "\n") && x->p < x->end) {
		int r;

		if (*count == FIELDS_MAX || !format_skip(x, "field:"))
			return -EBADMSG;
		r = format_take_field(x, &fields[*count]);
		if (r < 0)
			return r;
		(*count)++;
	}
	*ret_here = *count - before;
	return 0;
}

static int format_take_lists(struct format_parser *x, struct field *fields, struct format_head *ret)
{
	size_t count = 0;
	struct field *kept;
	int r = format_take_fields(x, fields, &count, &ret->common_count);

	if (r == 0)
		r = format_take_fields(x, fields, &count, &ret->field_count);
	if (r == 0 && x->p < x->end)
		r = -EBADMSG;
	if (r < 0)
		return r;
	kept = arena_alloc(x->arena, (count + 1) * sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	memcpy(kept, fields, count * sizeof(*kept));
	ret->common = kept;
	ret->fields = kept + ret->common_count;
	return 0;
}

static int format_take_head(struct format_parser *x, struct format_head *ret)
{
	_cleanup_free_ struct field *fields = malloc(FIELDS_MAX * sizeof(*fields));
	struct word name;
	uint32_t id;

	if (!fields)
		return -ENOMEM;
	if (!format_skip(x, "name:") || !format_take_word(x, &name) || !format_skip(x, "\n") ||
	    !format_take_number(x, "ID:", &id) || id > UINT16_MAX || !format_skip(x, "\n") ||
	    !format_skip(x, "format:") || !format_skip(x, "\n"))
		return -EBADMSG;
	ret->id = (uint16_t)id;
	ret->name = arena_strndup(x->arena, name.text, name.len);
	return ret->name ? format_take_lists(x, fields, ret) : -ENOMEM;
}

int format_head_parse(struct format_head *ret, const char *text, size_t len, unsigned word_size,
		      struct arena *arena)
{
	struct format_parser x = {
		.p = text,
		.end = text + len,
		.word_size = word_size,
		.arena = arena,
		.type = BUF_INIT,
	};
	struct format_head head = { 0 };
	int r = format_take_head(&x, &head);

	buf_deinit(&x.type);
	if (r == 0)
		*ret = head;
	return r;
}
