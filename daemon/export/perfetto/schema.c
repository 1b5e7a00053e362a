/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compiling: struct event and, for typed ones, protobuf-c's descriptor of the
 * message in; a row of struct pf_op out. write.c runs the rows.
 */
#include "export/perfetto/schema.h"

#include "export/perfetto/op.h"
#include "export/perfetto/wire.h"
#include "proto/perfetto/ftrace.pb-c.h"
#include "util/utf8.h"

#define EVENT_IDS (UINT16_MAX + 1)

/* google.protobuf.FieldDescriptorProto: label and types. */
enum { LABEL_OPTIONAL = 1, TYPE_INT64 = 3, TYPE_UINT64 = 4, TYPE_STRING = 9 };

/* Typed fields that the reader takes for interned kernel functions. */
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
};

static bool is_function(const char *event, const char *field)
{
	for (size_t i = 0; i < ARRAY_SIZE(function_fields); i++)
		if (!strcmp(event, function_fields[i].event) &&
		    !strcmp(field, function_fields[i].field))
			return true;
	return false;
}

static bool is_mask(const struct field *f)
{
	return f->is_dynamic && (strstr(f->type, "cpumask_t") || strstr(f->type, "unsigned long"));
}

static bool is_scalar(const struct field *f)
{
	return !f->is_array && !f->is_dynamic && !f->is_string && is_number_size(f->size);
}

/* What a field is, whatever it is written as. */
static struct pf_op op_for(const struct field *f)
{
	struct pf_op op = {
		.offset = f->offset,
		.size = f->size,
		.element_size = f->element_size,
		.is_signed = f->is_signed,
		.dynamic = f->is_relative  ? PF_DYNAMIC_RELATIVE
			   : f->is_dynamic ? PF_DYNAMIC
			   : !f->size	   ? PF_DYNAMIC_TAIL
					   : PF_FIXED,
	};

	if (f->is_string)
		op.kind = PF_STRING;
	else if (is_mask(f))
		op.kind = PF_MASK;
	else if (f->is_pointer && is_scalar(f))
		op.kind = PF_POINTER;
	else if (is_scalar(f))
		op.kind = f->is_signed ? PF_INT : PF_UINT;
	else if (f->element_size == 2 || f->element_size == 4 || f->element_size == 8)
		op.kind = PF_NUMBERS;
	else
		op.kind = PF_HEX;
	return op;
}

/* Fits what the field is to the message's type for it; false: it can't be. */
static bool fit_type(struct pf_op *op, const struct event *desc, const struct field *f,
		     const ProtobufCFieldDescriptor *to)
{
	bool number = op->kind == PF_INT || op->kind == PF_UINT || op->kind == PF_POINTER;

	op->field = to->id;
	switch (to->type) {
	case PROTOBUF_C_TYPE_STRING:
		return op->kind == PF_STRING;
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_BOOL:
	case PROTOBUF_C_TYPE_ENUM:
		break;
	default:
		return false;
	}
	if (to->label == PROTOBUF_C_LABEL_REPEATED) {
		op->kind = PF_REPEATED;
		return f->is_array && !f->is_string && is_number_size(f->element_size);
	}
	if (!number)
		return false;
	op->narrow = to->type == PROTOBUF_C_TYPE_UINT32;
	if (is_function(desc->name, f->name))
		op->kind = PF_FUNCTION;
	else if (!strcmp(f->type, "dev_t"))
		op->kind = PF_DEVICE;
	return true;
}

static size_t op_bound(const struct pf_op *op)
{
	size_t elements = op->size / MAX(op->element_size, 1u);

	switch (op->kind) {
	case PF_STRING:
	case PF_HEX:
		return 2 * WIRE_VARINT_MAX + UTF8_GROWTH * (size_t)op->size;
	case PF_NUMBERS:
	case PF_REPEATED:
		return 2 * WIRE_VARINT_MAX + elements * PF_NUMBER_MAX;
	default:
		return 2 * WIRE_VARINT_MAX;
	}
}

static void finish(struct pf_event *e)
{
	e->bound = 64;
	e->bound_factor = 0;
	for (size_t i = 0; i < e->op_count; i++) {
		e->bound += op_bound(&e->ops[i]);
		if (e->ops[i].dynamic != PF_FIXED)
			e->bound_factor += PF_NUMBER_MAX;
	}
}

static const ProtobufCFieldDescriptor *message_for(const struct event *desc)
{
	const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(
		&perfetto__protos__ftrace_event__descriptor, desc->name);

	/* Names are unique among the kernel's own events, but anyone can name a probe. */
	if (!f || f->type != PROTOBUF_C_TYPE_MESSAGE || !strcmp(desc->name, "generic") ||
	    !strcmp(desc->system, "kprobes") || !strcmp(desc->system, "uprobes") ||
	    !strcmp(desc->system, "synthetic") || !strcmp(desc->system, "syscalls"))
		return NULL;
	return f;
}

static int compile_typed(struct pf_event *e, const ProtobufCFieldDescriptor *message)
{
	const ProtobufCMessageDescriptor *m = message->descriptor;

	e->field = message->id;
	e->ops = calloc(MAX(e->desc->field_count, (size_t)1), sizeof(*e->ops));
	if (!e->ops)
		return -ENOMEM;
	for (size_t i = 0; i < e->desc->field_count; i++) {
		const struct field *f = &e->desc->fields[i];
		const ProtobufCFieldDescriptor *to =
			protobuf_c_message_descriptor_get_field_by_name(m, f->name);
		struct pf_op op = op_for(f);

		if (to && fit_type(&op, e->desc, f, to))
			e->ops[e->op_count++] = op;
	}
	return 0;
}

/* One FieldDescriptorProto: name 1, number 3, label 4, type 5. */
static void describe_field(struct buf *out, const char *name, uint32_t number, unsigned type)
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

static unsigned described_type(enum pf_kind kind)
{
	switch (kind) {
	case PF_INT:
		return TYPE_INT64;
	case PF_UINT:
	case PF_POINTER:
		return TYPE_UINT64;
	default:
		return TYPE_STRING;
	}
}

static int compile_generic(struct pf_event *e, uint32_t number)
{
	size_t count = MIN(e->desc->field_count, (size_t)PF_GENERIC_FIELDS_MAX);
	_cleanup_buf_ struct buf descriptor = BUF_INIT;
	size_t name_len = strlen(e->desc->name);
	uint8_t *p;

	e->generic = true;
	e->field = number;
	e->ops = calloc(MAX(count, (size_t)1), sizeof(*e->ops));
	p = (uint8_t *)buf_reserve(&descriptor, name_len + 2 * WIRE_VARINT_MAX);
	if (!e->ops || !p)
		return -ENOMEM;
	descriptor.len = (size_t)(wire_bytes(p, 1, e->desc->name, name_len) - p);
	for (size_t i = 0; i < count; i++) {
		struct pf_op *op = &e->ops[e->op_count++];

		*op = op_for(&e->desc->fields[i]);
		op->field = (uint32_t)i + 1;
		describe_field(&descriptor, e->desc->fields[i].name, op->field,
			       described_type(op->kind));
	}
	if (buf_error(&descriptor))
		return -ENOMEM;
	e->descriptor_len = descriptor.len;
	e->descriptor = (uint8_t *)TAKE_PTR(descriptor.data);
	return 0;
}

static int compile(struct pf_schema *s, const struct event *desc, uint32_t *generics)
{
	const ProtobufCFieldDescriptor *message = message_for(desc);
	struct pf_event *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	s->events[desc->id] = e;
	e->desc = desc;
	r = message ? compile_typed(e, message)
		    : compile_generic(e, PF_GENERIC_BASE + (*generics)++);
	finish(e);
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
	s->swap = env->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	s->events = calloc(EVENT_IDS, sizeof(*s->events));
	if (!s->events)
		return -ENOMEM;
	all = event_table_all(env->table, &count);
	for (size_t i = 0; i < count; i++) {
		int r = s->events[all[i]->id] ? 0 : compile(s, all[i], &generics);

		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

static void event_free(struct pf_event *e)
{
	if (e) {
		free(e->ops);
		free(e->descriptor);
		free(e);
	}
}

struct pf_schema *pf_schema_free(struct pf_schema *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; s->events && i < EVENT_IDS; i++)
		event_free(s->events[i]);
	free(s->events);
	free(s->functions);
	buf_deinit(&s->new_symbols);
	free(s);
	return NULL;
}

const struct pf_event *pf_schema_find(const struct pf_schema *s, uint16_t id)
{
	return s->events[id];
}

struct buf *pf_schema_new_symbols(struct pf_schema *s)
{
	return &s->new_symbols;
}
