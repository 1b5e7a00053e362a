/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compiles an event's format, and for typed events the description of its message, into a row of
 * struct pf_op. write.c runs the rows.
 */
#include "formats/perfetto/schema.h"

#include "base/utf8.h"
#include "formats/perfetto/addresses.h"
#include "formats/perfetto/messages.h"
#include "formats/perfetto/op.h"
#include "formats/perfetto/rest.h"
#include "formats/perfetto/wire.h"
#include "print/printer.h"

/* google.protobuf.FieldDescriptorProto: label and types. */
enum { LABEL_OPTIONAL = 1, TYPE_INT64 = 3, TYPE_UINT64 = 4, TYPE_STRING = 9 };

/*
 * Typed fields that are interned kernel functions, as in the traces of Perfetto's own recorder. Its
 * trace processor (v58) resolves all but the last four.
 */
static const struct {
	const char *event, *field;
} function_fields[] = {
	{ "sched_blocked_reason", "caller" },
	{ "workqueue_queue_work", "function" },
	{ "workqueue_activate_work", "function" },
	{ "workqueue_execute_start", "function" },
	{ "workqueue_execute_end", "function" },
	{ "funcgraph_entry", "func" },
	{ "funcgraph_exit", "func" },
	{ "hrtimer_expire_entry", "function" },
	{ "mm_shrink_slab_start", "shrink" },
	{ "mm_shrink_slab_end", "shrink" },
	{ "cpuhp_enter", "fun" },
	{ "cpuhp_multi_enter", "fun" },
	{ "kfree_skb", "location" },
};

static bool pf_field_is_function(const char *event, const char *field)
{
	for (size_t i = 0; i < ARRAY_SIZE(function_fields); i++)
		if (!strcmp(event, function_fields[i].event) &&
		    !strcmp(field, function_fields[i].field))
			return true;
	return false;
}

static bool pf_field_is_mask(const struct field *f)
{
	return f->is_dynamic && (strstr(f->type, "cpumask_t") || strstr(f->type, "unsigned long"));
}

/* libtraceevent takes arrays of u8 for strings, too; they may be network addresses. */
static bool pf_field_is_text(const struct field *f)
{
	return f->is_string && strstr(f->type, "char");
}

static bool pf_field_is_scalar(const struct field *f)
{
	return !f->is_array && !f->is_dynamic && !f->is_string && is_number_size(f->size);
}

bool pf_event_is_syscall(const struct event *desc)
{
	return !strcmp(desc->system, "syscalls") || !strcmp(desc->system, "raw_syscalls");
}

struct pf_op pf_op_for(const struct event *desc, const struct field *f)
{
	char symbol = event_symbol_kind(desc, f);
	struct pf_op op = {
		.offset = f->offset,
		.size = f->size,
		.element_size = f->element_size,
		.is_signed = f->is_signed,
		.hide = f->element_size == 8 && !f->is_signed && !pf_event_is_syscall(desc),
		.symbol = symbol,
		.dynamic = f->is_relative  ? PF_DYNAMIC_RELATIVE
			   : f->is_dynamic ? PF_DYNAMIC
			   : !f->size || symbol == SYMBOL_STACK
				   ? PF_DYNAMIC_TAIL /* a stack is longer than its format says */
				   : PF_FIXED,
	};

	if (pf_field_is_text(f))
		op.kind = PF_STRING;
	else if (symbol == SYMBOL_STACK && is_number_size(f->element_size))
		op.kind = PF_STACK;
	else if (pf_field_is_mask(f))
		op.kind = PF_MASK;
	else if (symbol && pf_field_is_scalar(f))
		op.kind = PF_SYMBOL;
	else if (f->is_pointer && strstr(f->type, "char") && pf_field_is_scalar(f) &&
		 !pf_event_is_syscall(desc))
		op.kind = PF_KERNEL;
	else if (f->is_pointer && pf_field_is_scalar(f) && !pf_event_is_syscall(desc))
		op.kind = PF_POINTER;
	else if (pf_field_is_scalar(f) && !strcmp(f->type, "dev_t"))
		op.kind = PF_DEVICE;
	else if (pf_field_is_scalar(f))
		op.kind = f->is_signed ? PF_INT : PF_UINT;
	else if (f->element_size == 2 || f->element_size == 4 || f->element_size == 8)
		op.kind = PF_NUMBERS;
	else
		op.kind = PF_HEX;
	return op;
}

/* An IPv4 address is an array of bytes and, in messages, the number at its place. */
static void op_join_bytes(struct pf_op *op, const struct field *f)
{
	op->kind = PF_UINT;
	op->element_size = f->size;
	op->is_signed = op->hide = false;
}

/* Adapts the operation to the message field's type. False: impossible. */
static bool op_fit_type(struct pf_op *op, const struct event *desc, const struct field *f,
			const struct pf_message_field *to)
{
	unsigned type = to->type & ~(unsigned)PF_REPEATED_FIELD;

	op->field = to->number;
	if (type == PF_TYPE_STRING)
		return op->kind == PF_STRING || op->kind == PF_KERNEL;
	if (type == PF_TYPE_BYTES) {
		bool fits = f->element_size == 1 && (op->kind == PF_HEX || op->kind == PF_STRING);

		op->kind = PF_RAW;
		return fits;
	}
	if (to->type & PF_REPEATED_FIELD) {
		op->kind = PF_REPEATED;
		return f->is_array && !f->is_string && is_number_size(f->element_size);
	}
	if (op->kind == PF_HEX && f->element_size == 1 && op->dynamic == PF_FIXED &&
	    is_number_size(f->size))
		op_join_bytes(op, f);
	op->narrow = type == PF_TYPE_UINT32;
	if (pf_field_is_function(desc->name, f->name) && pf_field_is_scalar(f))
		op->kind = PF_FUNCTION;
	else if (op->kind == PF_SYMBOL || op->kind == PF_KERNEL)
		op->kind = f->is_pointer ? PF_POINTER : PF_UINT;
	return op->kind == PF_INT || op->kind == PF_UINT || op->kind == PF_POINTER ||
	       op->kind == PF_DEVICE || op->kind == PF_FUNCTION;
}

static size_t op_bound(const struct pf_op *op, const struct pf_schema *s)
{
	size_t elements = op->size / MAX(op->element_size, 1u);

	switch (op->kind) {
	case PF_STRING:
	case PF_LINE:
	case PF_HEX:
	case PF_RAW:
		return 2 * WIRE_VARINT_MAX + UTF8_GROWTH * (size_t)op->size;
	case PF_SYMBOL:
		return 2 * WIRE_VARINT_MAX + SYMBOL_TEXT_MAX;
	case PF_KERNEL:
		return 2 * WIRE_VARINT_MAX + KERNEL_STRING_ROOM +
		       UTF8_GROWTH * s->env.table->printk.longest;
	case PF_NUMBERS:
	case PF_REPEATED:
		return 2 * WIRE_VARINT_MAX + elements * PF_NUMBER_MAX;
	case PF_MASK:
		return 2 * WIRE_VARINT_MAX + PF_MASK_MAX * (size_t)op->size;
	default:
		return 2 * WIRE_VARINT_MAX;
	}
}

static void op_set_quick_number(struct pf_op *op)
{
	uint64_t all = op->size == 8 ? UINT64_MAX : (UINT64_C(1) << op->size * 8) - 1;

	/* Addresses are hashed before they are cut to size. */
	if (op->offset + op->size < 8 || (op->narrow && op->size == 8))
		return;
	op->quick = PF_NUMBER;
	op->shift = (uint8_t)(64 - op->size * 8);
	op->mask = (op->is_signed ? UINT64_MAX : all) & (op->narrow ? UINT32_MAX : UINT64_MAX);
}

static void op_set_quick(struct pf_op *op, const struct pf_schema *s)
{
	bool little = !s->swap && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
	bool fixed = little && op->dynamic == PF_FIXED;

	op->quick = PF_ASK;
	if (op->lead_len)
		return;
	if (op->kind == PF_STRING)
		op->quick = PF_TEXT;
	else if (fixed && (op->kind == PF_UINT || op->kind == PF_INT))
		op_set_quick_number(op);
	else if (fixed && op->kind == PF_REPEATED && op->element_size == 8)
		op->quick = PF_LONGS;
}

static void schema_finish(struct pf_event *e, const struct pf_schema *s)
{
	e->bound = 80 + e->lead_len;
	e->tag_len = (uint8_t)(wire_tag(e->tag, e->field, WIRE_BYTES) - e->tag);
	e->bound_factor = 0;
	for (size_t i = 0; i < e->op_count; i++) {
		struct pf_op *op = &e->ops[i];
		uint8_t tag[WIRE_TAG_MAX] = { 0 };

		op_set_quick(op, s);
		if (op->quick >= PF_NUMBER)
			e->quick_end = MAX(e->quick_end, op->offset + op->size);
		op->tag_len = (uint8_t)(wire_tag(tag, op->field,
						 op->quick == PF_TEXT ? WIRE_BYTES : WIRE_VARINT) -
					tag);
		memcpy(op->tag, tag, sizeof(op->tag));
		e->has_made |= e->ops[i].kind == PF_STACK || e->ops[i].kind == PF_PRINTED;
		e->bound += op_bound(&e->ops[i], s) + e->ops[i].lead_len + 2 * WIRE_VARINT_MAX;
		if (e->ops[i].dynamic != PF_FIXED)
			e->bound_factor += op->kind == PF_MASK ? PF_MASK_MAX : PF_NUMBER_MAX;
	}
}

/* Probes may be in any group; the name of their first field shows them. */
static bool schema_is_probe(const struct event *desc)
{
	return desc->field_count && !strncmp(desc->fields[0].name, "__probe_", strlen("__probe_"));
}

/*
 * A message may lack the symbol that the kernel prints, or have another type than this kernel's
 * field. Readers only store such an event: the generic form, which they store as well, has all.
 */
static bool schema_field_is_lost(const struct event *desc, const struct field *f,
				 const struct pf_message_field *to)
{
	struct pf_op op = pf_op_for(desc, f);
	bool symbol = op.kind == PF_SYMBOL;

	return to && (!op_fit_type(&op, desc, f, to) || (symbol && op.kind != PF_FUNCTION));
}

/* Whether the message is this event's: architectures have different events of one name. */
static bool schema_message_fits(const struct event *desc, const struct pf_message *m)
{
	bool same = !desc->field_count || !m->field_count;

	for (size_t i = 0; i < desc->field_count; i++) {
		const struct field *f = &desc->fields[i];
		const struct pf_message_field *to = pf_message_find_field(m, f->name);

		same |= to != NULL;
		if (schema_field_is_lost(desc, f, to))
			return false;
	}
	return same;
}

static const struct pf_message *schema_message_for(const struct pf_schema *s,
						   const struct event *desc)
{
	const struct pf_message *m;

	/* A probe may have any name. */
	if (schema_is_probe(desc) || !strcmp(desc->system, "syscalls") ||
	    (s->env.generic_graph && desc->funcgraph))
		return NULL;
	m = pf_message_find(desc->system, desc->name);
	return m && schema_message_fits(desc, m) ? m : NULL;
}

static int schema_compile_typed(struct pf_event *e, const struct pf_message *message)
{
	e->field = message->number;
	e->ops = calloc(MAX(e->desc->field_count, (size_t)1), sizeof(*e->ops));
	if (!e->ops)
		return -ENOMEM;
	for (size_t i = 0; i < e->desc->field_count; i++) {
		const struct field *f = &e->desc->fields[i];
		const struct pf_message_field *to = pf_message_find_field(message, f->name);
		struct pf_op op = pf_op_for(e->desc, f);

		if (to && op_fit_type(&op, e->desc, f, to))
			e->ops[e->op_count++] = op;
	}
	return 0;
}

/* Writes a FieldDescriptorProto: name 1, number 3, label 4, type 5. */
static void schema_describe_field(struct buf *out, const char *name, uint32_t number, unsigned type)
{
	size_t len = strlen(name), bound = len + 64;
	uint8_t *start = (uint8_t *)buf_reserve(out, bound), *content, *p;

	if (!start)
		return;
	content = p = wire_open(start, 2);
	p = wire_bytes(p, 1, name, len);
	p = wire_uint(p, 3, number);
	p = wire_uint(p, 4, LABEL_OPTIONAL);
	p = wire_uint(p, 5, type);
	out->len += (size_t)(wire_close(content, p) - start);
}

static unsigned schema_described_type(enum pf_kind kind)
{
	switch (kind) {
	case PF_INT:
		return TYPE_INT64;
	case PF_UINT:
	case PF_POINTER:
	case PF_DEVICE:
		return TYPE_UINT64;
	default:
		return TYPE_STRING;
	}
}

static struct pf_event *schema_event_free(struct pf_event *e)
{
	if (e) {
		schema_event_free(e->free_text);
		free(e->ops);
		free(e->descriptor);
		free(e->lead);
		free(e->rest);
		free(e);
	}
	return NULL;
}

/* State while building a generic event. */
struct draft {
	struct pf_event *e;
	struct buf descriptor, lead;
	uint32_t fields; /* fields in the descriptor */
};

static void draft_bytes(struct buf *out, uint32_t field, const char *text)
{
	size_t len = strlen(text);
	uint8_t *p = (uint8_t *)buf_reserve(out, len + WIRE_TAG_MAX + WIRE_VARINT_MAX);

	if (p)
		out->len += (size_t)(wire_bytes(p, field, text, len) - p);
}

static void draft_field(struct draft *d, const char *name, struct pf_op op)
{
	op.field = ++d->fields;
	schema_describe_field(&d->descriptor, name, op.field, schema_described_type(op.kind));
	d->e->ops[d->e->op_count++] = op;
}

/* Adds a field with the same value in all events of this kind. */
static void draft_constant(struct draft *d, const char *name, uint64_t value)
{
	uint8_t *p = (uint8_t *)buf_reserve(&d->lead, WIRE_TAG_MAX + WIRE_VARINT_MAX);

	schema_describe_field(&d->descriptor, name, ++d->fields, TYPE_UINT64);
	if (p)
		d->lead.len += (size_t)(wire_uint(p, d->fields, value) - p);
}

/*
 * With these field names, readers make the event an instant, on a track of its thread with the
 * event's name.
 */
static void draft_instant(struct draft *d, struct pf_op name)
{
	draft_constant(d, "track_event_type", 'I');
	draft_field(d, "slice_name", name);
}

/*
 * ftrace's own events without a message that deserve an instant, named after the called function or
 * trace_printk()'s text. The name replaces that field.
 */
enum named { NAMED_NOT, NAMED_BY_IP, NAMED_BY_TEXT };

static enum named draft_named(struct draft *d)
{
	const struct event *desc = d->e->desc;

	if (strcmp(desc->system, "ftrace") != 0)
		return NAMED_NOT;
	if (!strcmp(desc->name, "bprint") || !strcmp(desc->name, "bputs")) {
		draft_instant(d, (struct pf_op){ .kind = PF_PRINTED });
		return NAMED_BY_TEXT;
	}
	for (size_t i = 0; !strcmp(desc->name, "function") && i < desc->field_count; i++) {
		struct pf_op op = pf_op_for(desc, &desc->fields[i]);

		if (strcmp(desc->fields[i].name, "ip") != 0 || op.kind != PF_SYMBOL)
			continue;
		draft_instant(d, op);
		return NAMED_BY_IP;
	}
	return NAMED_NOT;
}

static int draft_finish(struct draft *d)
{
	struct pf_event *e = d->e;
	int r = d->descriptor.failed || d->lead.failed ? -ENOMEM : 0;

	e->descriptor_len = d->descriptor.len;
	e->descriptor = (uint8_t *)TAKE_PTR(d->descriptor.data);
	e->lead_len = d->lead.len;
	e->lead = (uint8_t *)TAKE_PTR(d->lead.data);
	return r;
}

static int schema_compile_generic(struct pf_event *e, uint32_t number, bool raw_addresses)
{
	enum named named;
	struct draft d = { .e = e };

	e->generic = true;
	e->field = number;
	e->ops = calloc(PF_GENERIC_FIELDS_MAX + 1, sizeof(*e->ops));
	if (!e->ops)
		return -ENOMEM;
	draft_bytes(&d.descriptor, 1, e->desc->name);
	named = draft_named(&d);
	for (size_t i = 0; i < e->desc->field_count && d.fields < PF_GENERIC_FIELDS_MAX; i++) {
		const struct field *f = &e->desc->fields[i];
		struct pf_op op = pf_op_for(e->desc, f);
		bool ip = !strcmp(f->name, "ip");

		if (named == NAMED_BY_TEXT && !ip)
			continue;
		if (named == NAMED_BY_IP && ip) {
			if (!raw_addresses)
				continue;
			op.kind = PF_UINT;
		}
		draft_field(&d, f->name, op);
	}
	return draft_finish(&d);
}

/* Readers count text that is no atrace mark as an error and hide it: write an instant instead. */
static int schema_compile_free_text(const struct pf_schema *s, struct pf_event *print,
				    uint32_t number)
{
	struct pf_event *e = calloc(1, sizeof(*e));
	struct draft d = { .e = e };
	int r;

	if (!e)
		return -ENOMEM;
	print->free_text = e;
	e->desc = print->desc;
	e->generic = true;
	e->field = number;
	e->ops = calloc(1, sizeof(*e->ops));
	if (!e->ops)
		return -ENOMEM;
	draft_bytes(&d.descriptor, 1, e->desc->name);
	for (size_t i = 0; i < print->op_count; i++) {
		struct pf_op op = print->ops[i];

		if (op.kind != PF_STRING)
			continue;
		op.kind = PF_LINE;
		draft_instant(&d, op);
		break;
	}
	r = draft_finish(&d);
	if (!e->op_count) /* the format has no text */
		print->free_text = schema_event_free(e);
	else
		schema_finish(e, s);
	return r;
}

/* GenericFtraceEvent: event_name 1, field 2 { name 1, str_value 3, int_value 4, uint_value 5 }. */
static int schema_compile_legacy(struct pf_event *e)
{
	size_t *leads = calloc(e->desc->field_count + 1, sizeof(*leads));
	struct draft d = { .e = e };
	int r;

	e->field = PF_LEGACY_GENERIC;
	e->ops = calloc(e->desc->field_count + 1, sizeof(*e->ops));
	if (!e->ops || !leads) {
		free(leads);
		return -ENOMEM;
	}
	draft_bytes(&d.lead, 1, e->desc->name);
	e->lead_len = d.lead.len;
	for (size_t i = 0; i < e->desc->field_count; i++) {
		struct pf_op *op = &e->ops[e->op_count++];
		unsigned type;

		*op = pf_op_for(e->desc, &e->desc->fields[i]);
		type = schema_described_type(op->kind);
		op->field = type == TYPE_STRING ? 3 : type == TYPE_INT64 ? 4 : 5;
		leads[i] = d.lead.len;
		draft_bytes(&d.lead, 1, e->desc->fields[i].name);
		op->lead_len = (uint32_t)(d.lead.len - leads[i]);
	}
	r = d.lead.failed ? -ENOMEM : 0;
	e->lead = (uint8_t *)TAKE_PTR(d.lead.data);
	for (size_t i = 0; r >= 0 && i < e->op_count; i++)
		e->ops[i].lead = e->lead + leads[i];
	free(leads);
	return r;
}

static int schema_compile(struct pf_schema *s, const struct event *desc, uint32_t *generics)
{
	const struct pf_message *message = schema_message_for(s, desc);
	struct pf_event *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	s->events[desc->id] = e;
	s->events_end = MAX(s->events_end, desc->id + 1U);
	e->desc = desc;
	if (message) {
		r = schema_compile_typed(e, message);
		if (r >= 0 && !strcmp(desc->name, "print") && !s->env.legacy_generic)
			r = schema_compile_free_text(s, e, PF_GENERIC_BASE + (*generics)++);
	} else if (s->env.legacy_generic) {
		r = schema_compile_legacy(e);
	} else {
		r = schema_compile_generic(e, PF_GENERIC_BASE + (*generics)++,
					   s->env.raw_addresses);
	}
	if (r >= 0)
		r = pf_rest_compile(e);
	if (!strcmp(desc->system, "task") && !strcmp(desc->name, "task_newtask"))
		e->born = event_field(desc, "pid");
	e->noticed = e->free_text || e->born;
	schema_finish(e, s);
	return r;
}

int pf_schema_new(struct pf_schema **ret, const struct pf_schema_env *env)
{
	_cleanup_(pf_schema_freep) struct pf_schema *s = calloc(1, sizeof(*s));
	const struct event *const *all;
	uint32_t generics = 0;
	size_t count;

	if (!s)
		return -ENOMEM;
	s->env = *env;
	s->fraction_shares.max = PF_FRACTIONS_MAX;
	s->swap = env->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	s->events = calloc(EVENT_IDS, sizeof(*s->events));
	if (!s->events || printer_new(&s->printer, env->table) < 0)
		return -ENOMEM;
	all = event_table_all(env->table, &count);
	for (size_t i = 0; i < count; i++) {
		int r = s->events[all[i]->id] ? 0 : schema_compile(s, all[i], &generics);

		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

struct pf_schema *pf_schema_free(struct pf_schema *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; s->events && i < s->events_end; i++)
		schema_event_free(s->events[i]);
	free(s->events);
	free(s->births);
	free(s->counters);
	buf_deinit(&s->counter_names);
	TABLE_DEINIT(&s->functions);
	TABLE_DEINIT(&s->fractions);
	shares_deinit(&s->fraction_shares);
	free(s->addresses.slots);
	buf_deinit(&s->new_symbols);
	buf_deinit(&s->new_formats);
	buf_deinit(&s->new_addresses);
	buf_deinit(&s->made);
	printer_free(s->printer);
	free(s);
	return NULL;
}

void pf_schema_restart(struct pf_schema *s)
{
	TABLE_CLEAR(&s->functions);
	TABLE_CLEAR(&s->addresses);
	for (size_t i = 0; i < s->events_end; i++)
		if (s->events[i]) {
			s->events[i]->announced = false;
			s->events[i]->aside = true;
		}
	buf_clear(&s->new_symbols);
	buf_clear(&s->new_formats);
	buf_clear(&s->new_addresses);
}
