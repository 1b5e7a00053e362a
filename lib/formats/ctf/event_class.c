/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An event class: the copies to make from a record, and their description. */
#include "base/bytes.h"
#include "formats/ctf/ctf.h"
#include "print/builtin.h"

enum field_kind {
	FIELD_COPY,
	FIELD_STRING,
	FIELD_SEQUENCE, /* length in elements, then the elements */
	FIELD_SYMBOL,
	FIELD_STACK,   /* number of names, then the names */
	FIELD_PRINTED, /* text of the event */
};

enum op_place { PLACE_FIXED, PLACE_DYNAMIC, PLACE_RELATIVE, PLACE_TAIL };

/* Larger events are not the kernel's: a format that claims more may be made to fill the disk. */
#define EVENT_BYTES_MAX (256U << 10)
#define NAME_BYTES 256
/* Names per field: field, its length, its symbol, the symbol's length. */
#define NAMES_PER_FIELD 4
/* Operations per field: the copy and the symbol. */
#define OPS_PER_FIELD 2

/* State while building a class. */
struct draft {
	struct ctf *c;
	struct ctf_class *k;
	char (*names)[NAME_BYTES]; /* owned; all different */
	size_t name_count;
	unsigned numbered; /* last number used to make a name unique */
	uint64_t bytes;
};

/* Bytes of a field, checked against the record. */
struct span {
	const uint8_t *data;
	uint32_t len;
};

/* Record size needed to find the field's bytes. */
static uint32_t op_least(const struct ctf_op *op)
{
	switch ((enum op_place)op->place) {
	case PLACE_FIXED:
		return op->kind == FIELD_SYMBOL ? op->element : op->size;
	case PLACE_TAIL:
		return 0;
	default:
		return sizeof(uint32_t);
	}
}

static void class_add_op(struct draft *d, struct ctf_op op)
{
	struct ctf_class *k = d->k;
	struct ctf_op *last = k->op_count ? &k->ops[k->op_count - 1] : NULL;

	d->bytes += op.size;
	k->least = MAX(k->least, op.offset + op_least(&op));
	if (op.kind == FIELD_COPY && last && last->kind == FIELD_COPY &&
	    last->offset + last->size == op.offset) {
		last->size += op.size;
		return;
	}
	k->ops[k->op_count++] = op;
}

static bool class_has_name(const struct draft *d, const char *name)
{
	for (size_t i = 0; i < d->name_count; i++)
		if (!strcmp(d->names[i], name))
			return true;
	return false;
}

/*
 * Adds an underscore, which readers remove, so that no name is a CTF keyword. Duplicates get a
 * number; numbers only grow, since a format may have hundreds of equal names.
 */
static const char *class_put_name(struct draft *d, const char *name, const char *ending)
{
	char *to = d->names[d->name_count];
	size_t n = 0;

	to[n++] = '_';
	for (; *name && n < NAME_BYTES - 32; name++)
		to[n++] = (char)((*name >= '0' && *name <= '9') || (*name >= 'a' && *name <= 'z') ||
						 (*name >= 'A' && *name <= 'Z')
					 ? *name
					 : '_');
	strcpy(to + n, ending);
	n += strlen(ending);
	while (class_has_name(d, to))
		sprintf(to + n, "_%u", ++d->numbered);
	d->name_count++;
	return to;
}

static const char *class_integer_type(uint32_t size, bool is_signed, bool hex)
{
	static const char *const types[3][4] = {
		{ "uint8_t", "uint16_t", "uint32_t", "uint64_t" },
		{ "int8_t", "int16_t", "int32_t", "int64_t" },
		{ "hex8_t", "hex16_t", "hex32_t", "hex64_t" },
	};
	unsigned log = size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0;

	return types[hex ? 2 : is_signed][log];
}

/* "char" only: libtraceevent also takes byte arrays for text. */
static bool ctf_field_is_text(const struct field *f)
{
	const char *type = f->type;

	if (!strncmp(type, "__data_loc ", 11) || !strncmp(type, "__rel_loc ", 10))
		type = strchr(type, ' ') + 1;
	if (!strncmp(type, "const ", 6))
		type += 6;
	return f->is_string && !strncmp(type, "char", 4) && strcspn(type, " [") == 4;
}

static uint32_t class_element_size(const struct ctf *c, const struct field *f)
{
	if (strstr(f->type, "cpumask_t"))
		return c->info->header->word_size == 8 ? 8 : 4;
	return is_number_size(f->element_size) ? f->element_size : 1;
}

static const char *class_element_type(const struct ctf *c, const struct field *f)
{
	uint32_t size = class_element_size(c, f);
	/* Binary bytes are mostly addresses and hashes; words are stacks, masks and arguments. */
	bool hex = size == 1 || (size == c->info->header->word_size && !f->is_signed);

	return ctf_field_is_text(f) ? "char_t" : class_integer_type(size, f->is_signed, hex);
}

static void class_declare_sequence(struct draft *d, const char *type, const char *name,
				   const char *ending)
{
	const char *to = class_put_name(d, name, ending);
	/* LTTng's convention: "__args_length" for "_args". */
	const char *length = class_put_name(d, to, "_length");

	buf_printf(&d->c->classes, "\t\tuint32_t %s;\n\t\t%s %s[ %s ];\n", length, type, to,
		   length);
}

static void class_declare(struct draft *d, const char *type, const char *name, const char *ending)
{
	buf_printf(&d->c->classes, "\t\t%s %s;\n", type, class_put_name(d, name, ending));
}

static bool ctf_field_is_dynamic(const struct field *f)
{
	return f->is_dynamic || f->is_relative;
}

static bool ctf_field_is_scalar(const struct field *f)
{
	return !f->is_array && !ctf_field_is_dynamic(f) && is_number_size(f->size);
}

/* Like event_symbol_kind(), plus the function_graph events, which have their own print code. */
static char class_symbol_kind(const struct event *desc, const struct field *f)
{
	char kind = event_symbol_kind(desc, f);

	if (!kind && desc->funcgraph && (!strcmp(f->name, "func") || !strcmp(f->name, "retaddr")))
		kind = 'f';
	return kind == SYMBOL_STACK || ctf_field_is_scalar(f) ? kind : 0;
}

static enum op_place class_place_of(const struct field *f, char symbol)
{
	if (f->is_relative)
		return PLACE_RELATIVE;
	if (f->is_dynamic)
		return PLACE_DYNAMIC;
	/* A stack is longer than its format says. */
	return !f->size || symbol == SYMBOL_STACK ? PLACE_TAIL : PLACE_FIXED;
}

static void class_add_field(struct draft *d, const struct field *f)
{
	char symbol = d->k->desc ? class_symbol_kind(d->k->desc, f) : 0;
	uint32_t element = class_element_size(d->c, f);
	struct ctf_op op = {
		.kind = FIELD_COPY,
		.place = (uint8_t)class_place_of(f, symbol),
		.offset = f->offset,
		.size = f->size,
		.element = element,
	};

	if (op.place != PLACE_FIXED) {
		op.size = 0;
		op.kind = ctf_field_is_text(f) ? FIELD_STRING : FIELD_SEQUENCE;
		if (op.kind == FIELD_STRING)
			class_declare(d, "string", f->name, "");
		else
			class_declare_sequence(d, class_element_type(d->c, f), f->name, "");
	} else if (ctf_field_is_scalar(f)) {
		class_declare(d, class_integer_type(f->size, f->is_signed, f->is_pointer || symbol),
			      f->name, "");
	} else {
		bool whole = f->size % element == 0;

		buf_printf(&d->c->classes, "\t\t%s %s[%u];\n",
			   whole ? class_element_type(d->c, f) : "hex8_t",
			   class_put_name(d, f->name, ""), whole ? f->size / element : f->size);
	}
	class_add_op(d, op);
}

static void class_add_symbol(struct draft *d, const struct field *f)
{
	char symbol = class_symbol_kind(d->k->desc, f);
	struct ctf_op op = {
		.kind = symbol == SYMBOL_STACK ? FIELD_STACK : FIELD_SYMBOL,
		.place = (uint8_t)class_place_of(f, symbol),
		.symbol = symbol,
		.offset = f->offset,
		.element = class_element_size(d->c, f),
	};

	if (!symbol)
		return;
	if (symbol == SYMBOL_STACK) {
		class_declare_sequence(d, "string", f->name, "_symbols");
	} else {
		class_declare(d, "string", f->name, "_symbol");
		op.element = f->size;
	}
	class_add_op(d, op);
}

/* Fields that each event's header or context already holds. */
static bool class_is_usual(const struct field *f)
{
	static const char *const names[] = { "common_type", "common_flags", "common_preempt_count",
					     "common_pid" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(f->name, names[i]))
			return true;
	return false;
}

/* Binary printk: the record holds the arguments, the kernel the format text. */
static bool class_is_printk(const struct event *desc)
{
	return !strcmp(desc->system, "ftrace") &&
	       (!strcmp(desc->name, "bprint") || !strcmp(desc->name, "bputs"));
}

static void class_add_fields(struct draft *d)
{
	const struct event *desc = d->k->desc;

	for (size_t i = 0; i < desc->common_count; i++)
		if (!class_is_usual(&desc->common[i]))
			class_add_field(d, &desc->common[i]);
	for (size_t i = 0; i < desc->field_count; i++)
		class_add_field(d, &desc->fields[i]);
	for (size_t i = 0; i < desc->field_count; i++)
		class_add_symbol(d, &desc->fields[i]);
	if (class_is_printk(desc)) {
		class_declare(d, "string", "text", "");
		class_add_op(d, (struct ctf_op){ .kind = FIELD_PRINTED });
	}
}

static void class_add_bytes(struct draft *d)
{
	class_declare_sequence(d, "hex8_t", "record", "");
	class_add_op(d,
		     (struct ctf_op){ .kind = FIELD_SEQUENCE, .place = PLACE_TAIL, .element = 1 });
}

static void class_finish(struct draft *d)
{
	struct ctf_class *k = d->k;

	k->plain = d->bytes <= EVENT_BYTES_MAX;
	for (size_t i = 0; i < k->op_count; i++)
		k->plain &= k->ops[i].kind == FIELD_COPY;
	k->bytes = k->plain ? (uint32_t)d->bytes : 0;
}

static size_t class_count_fields(const struct event *desc)
{
	return desc ? desc->common_count + desc->field_count : 0;
}

static int class_describe(struct draft *d, uint16_t kernel_id)
{
	const struct event *desc = d->k->desc;
	_cleanup_buf_ struct buf name = BUF_INIT;
	int64_t id;

	if (desc)
		buf_printf(&name, "%s:%s%s", desc->system, desc->name, d->k->raw ? " (raw)" : "");
	else
		buf_printf(&name, "unknown:%u", kernel_id);
	d->names = calloc((class_count_fields(desc) + 1) * NAMES_PER_FIELD, sizeof(*d->names));
	if (buf_error(&name) || !d->names)
		return -ENOMEM;
	id = ctf_begin_class(d->c, CTF_KERNEL, name.data, name.len);
	if (id < 0)
		return (int)id;
	d->k->id = (uint32_t)id;
	if (d->k->raw || !desc)
		class_add_bytes(d);
	else
		class_add_fields(d);
	ctf_end_class(d->c);
	class_finish(d);
	return buf_error(&d->c->classes);
}

int ctf_class_new(struct ctf_class **ret, struct ctf *c, uint16_t kernel_id,
		  const struct event *desc, bool raw)
{
	size_t ops = (class_count_fields(desc) + 1) * OPS_PER_FIELD;
	struct ctf_class *k = calloc(1, sizeof(*k) + ops * sizeof(k->ops[0]));
	struct draft d = { .c = c, .k = k, .numbered = 1 };
	int r;

	if (!k)
		return -ENOMEM;
	k->desc = desc;
	k->raw = raw || !desc;
	r = class_describe(&d, kernel_id);
	free(d.names);
	if (r < 0)
		ctf_class_free(k);
	else
		*ret = k;
	return r;
}

struct ctf_class *ctf_class_free(struct ctf_class *k)
{
	free(k);
	return NULL;
}

static bool op_locate(const struct ctf *c, const struct ctf_op *op, const struct record *rec,
		      struct span *ret)
{
	uint64_t start = op->offset, len = op->size;

	if (op->place == PLACE_TAIL) {
		len = rec->len - start;
		len -= op->kind == FIELD_STRING ? 0 : len % op->element;
	} else if (op->place != PLACE_FIXED) {
		uint32_t loc = load_u32(rec->data + start, c->info->layout.big_endian);

		len = loc >> 16;
		start = (loc & 0xffff) + (op->place == PLACE_RELATIVE ? start + sizeof(loc) : 0);
		if (start + len > rec->len || (op->kind != FIELD_STRING && len % op->element))
			return false;
	} else if (op->kind == FIELD_SYMBOL) {
		len = op->element;
	}
	*ret = (struct span){ rec->data + start, (uint32_t)len };
	return true;
}

static uint64_t op_load_address(const struct ctf *c, const uint8_t *p, uint32_t size)
{
	return load_uint(p, size, c->swap);
}

static void op_put_symbol(struct printer *printer, uint64_t address, char kind, struct buf *out)
{
	char *p = buf_reserve(out, SYMBOL_TEXT_MAX);

	if (p && address)
		out->len += (size_t)(print_symbol(printer, p, address, kind) - p);
	buf_putc(out, '\0');
}

static void op_put_stack(const struct ctf *c, struct printer *printer, struct span at,
			 uint32_t word, struct buf *out)
{
	const uint64_t end = word == 8 ? UINT64_MAX : UINT32_MAX;

	ctf_put_u32(c, out, at.len / word);
	for (uint32_t i = 0; i < at.len; i += word) {
		uint64_t address = op_load_address(c, at.data + i, word);

		if (address == TRAMPOLINE_ADDRESS)
			buf_append(out, TRAMPOLINE_TEXT, sizeof(TRAMPOLINE_TEXT));
		else
			op_put_symbol(printer, address == end ? 0 : address, 'f', out);
	}
}

static void op_put_printed(const struct ctf_class *k, struct printer *printer,
			   const struct record *rec, struct buf *out)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (builtin_print_message(printer, k->desc, rec, &text))
		while (text.len && text.data[text.len - 1] == '\n')
			text.len--;
	out->failed |= text.failed;
	ctf_put_text(out, text.data, text.len);
}

static void op_put(const struct ctf *c, const struct ctf_class *k, const struct ctf_op *op,
		   struct printer *printer, const struct record *rec, struct buf *out)
{
	struct span at = { 0 };

	if (op->kind == FIELD_COPY) {
		buf_append(out, rec->data + op->offset, op->size);
		return;
	}
	if (op->kind != FIELD_PRINTED)
		op_locate(c, op, rec, &at);
	switch ((enum field_kind)op->kind) {
	case FIELD_STRING:
		buf_append(out, at.data, strnlen((const char *)at.data, at.len));
		buf_putc(out, '\0');
		break;
	case FIELD_SEQUENCE:
		ctf_put_u32(c, out, at.len / op->element);
		buf_append(out, at.data, at.len);
		break;
	case FIELD_SYMBOL:
		op_put_symbol(printer, op_load_address(c, at.data, at.len), op->symbol, out);
		break;
	case FIELD_STACK:
		op_put_stack(c, printer, at, op->element, out);
		break;
	default:
		op_put_printed(k, printer, rec, out);
	}
}

/* Whether all fields lie within the record, within a plausible size. */
static bool class_fits(const struct ctf *c, const struct ctf_class *k, const struct record *rec)
{
	uint64_t bytes = 0;
	struct span at;

	for (size_t i = 0; i < k->op_count; i++) {
		const struct ctf_op *op = &k->ops[i];

		bytes += op->size;
		if (op->kind == FIELD_COPY || op->kind == FIELD_PRINTED)
			continue;
		if (!op_locate(c, op, rec, &at))
			return false;
		bytes += op->kind == FIELD_STACK    ? at.len / op->element * UINT64_C(64)
			 : op->kind == FIELD_SYMBOL ? SYMBOL_TEXT_MAX
						    : at.len;
	}
	return bytes <= EVENT_BYTES_MAX + rec->len;
}

_hot_ int ctf_class_put(const struct ctf *c, const struct ctf_class *k, struct printer *printer,
			const struct record *rec, struct buf *out)
{
	char *p;

	if (unlikely(rec->len < k->least))
		return -EBADMSG;
	if (unlikely(!k->plain)) {
		if (!class_fits(c, k, rec))
			return -EBADMSG;
		for (size_t i = 0; i < k->op_count; i++)
			op_put(c, k, &k->ops[i], printer, rec, out);
		return buf_error(out);
	}
	p = buf_reserve(out, k->bytes);
	if (!p)
		return -ENOMEM;
	for (size_t i = 0; i < k->op_count; i++)
		p = mempcpy(p, rec->data + k->ops[i].offset, k->ops[i].size);
	out->len += k->bytes;
	return 0;
}
