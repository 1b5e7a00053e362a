/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/tracefs/event_field.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "daemon/capture/tracefs/print_format.h"

struct field {
	struct span name, type; /* type without what follows the name */
	bool is_array;		/* the name is followed by [...] */
	struct span array;	/* that */
	unsigned long size;	/* bytes in the record */
	bool is_signed;
};

static bool span_is(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.text, text, s.len) == 0;
}

static bool span_is_one_of(struct span s, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (span_is(s, words[i]))
			return true;
	return false;
}

static bool span_begins(struct span s, const char *text)
{
	return s.len >= strlen(text) && memcmp(s.text, text, strlen(text)) == 0;
}

static struct span span_skip(struct span s, size_t len)
{
	return (struct span){ s.text + len, s.len - len };
}

/* Splits "char prev_comm[16]", "__data_loc char[] name". False: no name at the end. */
static bool field_split(struct field *f, struct span decl)
{
	size_t end = decl.len, begin;

	f->is_array = end && decl.text[end - 1] == ']';
	if (f->is_array) {
		while (end && decl.text[end - 1] != '[')
			end--;
		end -= end > 0;
	}
	for (begin = end; begin && span_name_char(decl.text[begin - 1]);)
		begin--;
	f->name = (struct span){ decl.text + begin, end - begin };
	f->array = (struct span){ decl.text + end, decl.len - end };
	while (begin && decl.text[begin - 1] == ' ')
		begin--;
	f->type = (struct span){ decl.text, begin };
	return f->name.len && f->type.len;
}

/* Takes the line of a field: "\tfield:DECLARATION;\toffset:8;\tsize:16;\tsigned:0;". */
static bool event_field_take(struct field *f, const char **at)
{
	const char *line, *end, *size;

	while ((line = strstr(*at, "\n\tfield:"))) {
		struct span decl = { line + strlen("\n\tfield:"), 0 };

		end = decl.text + strcspn(decl.text, "\n");
		*at = end;
		decl.len = strcspn(decl.text, ";\n");
		size = strstr(decl.text, ";\tsize:");
		if (!size || size >= end)
			continue;
		f->size = strtoul(size + strlen(";\tsize:"), NULL, 10);
		f->is_signed =
			memmem(size, (size_t)(end - size), ";\tsigned:1;", strlen(";\tsigned:1;"));
		if (field_split(f, decl))
			return true;
	}
	return false;
}

static bool type_is_text(struct span type, bool is_array)
{
	static const char *const dynamic[] = { "char[]", "cpumask_t", "cpumask_t[]" };
	bool relative = span_begins(type, "__rel_loc ");

	if (relative || span_begins(type, "__data_loc "))
		return span_is_one_of(span_skip(type, strcspn(type.text, " ") + 1), dynamic,
				      ARRAY_SIZE(dynamic));
	return is_array && span_is(type, "char");
}

/* Types that hold no address, whatever their size: system calls keep an int in a whole word. */
static bool type_is_plain(struct span type)
{
	static const char *const plain[] = {
		"char",
		"signed char",
		"unsigned char",
		"bool",
		"short",
		"short int",
		"unsigned short",
		"int",
		"signed int",
		"unsigned int",
		"unsigned",
		"s8",
		"u8",
		"s16",
		"u16",
		"s32",
		"u32",
		"__s32",
		"__u32",
		"int32_t",
		"uint32_t",
		"pid_t",
		"uid_t",
		"gid_t",
		"dev_t",
		"mode_t",
		"umode_t",
		"gfp_t",
		"size_t",
		"ssize_t",
	};

	if (span_begins(type, "const "))
		type = span_skip(type, strlen("const "));
	return span_is_one_of(type, plain, ARRAY_SIZE(plain)) || span_begins(type, "enum ");
}

/* True for "parent_ip", "call_site", "skbaddr": by the last word of the name. */
static bool name_is_of_address(struct span name)
{
	static const char *const words[] = { "ip",	 "rip",	     "pc",	  "sp",
					     "site",	 "func",     "function",  "fn",
					     "caller",	 "callsite", "call",	  "handler",
					     "callback", "pointer",  "stack",	  "base",
					     "location", "symbol",   "stacktrace" };
	static const char *const ends[] = { "addr", "ptr", "address" };
	const char *under = memrchr(name.text, '_', name.len);
	struct span last = under ? span_skip(name, (size_t)(under + 1 - name.text)) : name;

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t len = strlen(ends[i]);

		if (last.len >= len && strncasecmp(last.text + last.len - len, ends[i], len) == 0)
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (last.len == strlen(words[i]) && strncasecmp(last.text, words[i], last.len) == 0)
			return true;
	return false;
}

/*
 * True for a number that may be an address though no type and no conversion says so. The names are
 * those of vmalloc, msr, error_report, mmiotrace and kvm. A rule by type alone would also close
 * flags, inodes and page frames, which are printed alike.
 */
static bool field_is_place(const struct field *f)
{
	static const char *const ends[] = { "start", "end" }, *const words[] = {
		"vstart", "vend", "virt", "val", "value", "data", "desc", "id",
	};
	const char *under = memrchr(f->name.text, '_', f->name.len);
	struct span last = under ? span_skip(f->name, (size_t)(under + 1 - f->name.text)) : f->name;

	if (f->is_signed || (f->size != 8 && !span_is(f->type, "unsigned long")))
		return false;
	return span_is_one_of(last, ends, ARRAY_SIZE(ends)) ||
	       span_is_one_of(f->name, words, ARRAY_SIZE(words));
}

static enum event_field_kind field_judge(const struct field *f, const char *print_fmt)
{
	/* Nothing smaller than a pointer holds one. A 32-bit daemon is stricter. */
	bool is_small = f->size && f->size < sizeof(void *);
	enum print_use use;

	if (memchr(f->type.text, '*', f->type.len))
		return EVENT_FIELD_POINTER;
	use = print_format_use(print_fmt, f->name);
	if (use == PRINT_USE_POINTER)
		return EVENT_FIELD_PRINTED;
	if (type_is_text(f->type, f->is_array))
		return EVENT_FIELD_OPEN;
	if (f->is_array || memchr(f->type.text, '[', f->type.len) ||
	    span_begins(f->type, "__data_loc ") || span_begins(f->type, "__rel_loc ") ||
	    span_begins(f->type, "struct ") || span_begins(f->type, "union "))
		return EVENT_FIELD_COMPOUND;
	/* The hardware's 16-bit addresses are none of the kernel's. */
	if ((!f->size || f->size >= 4) && name_is_of_address(f->name))
		return EVENT_FIELD_NAMED;
	if (use == PRINT_USE_HEX && field_is_place(f))
		return EVENT_FIELD_NAMED;
	return is_small || type_is_plain(f->type) || use != PRINT_USE_UNKNOWN
		       ? EVENT_FIELD_OPEN
		       : EVENT_FIELD_NOT_SHOWN;
}

/* Names that the kernel accepts for any event: trace_define_generic_fields(). */
static enum event_field_kind generic_judge(struct span name)
{
	static const char *const open[] = { "CPU", "cpu", "COMM", "comm" };

	if (span_is(name, "stacktrace") || span_is(name, "STACKTRACE"))
		return EVENT_FIELD_STACK;
	return span_is_one_of(name, open, ARRAY_SIZE(open)) ? EVENT_FIELD_OPEN
							    : EVENT_FIELD_MISSING;
}

enum event_field_kind event_field_judge(const char *format, const char *name, size_t len)
{
	const char *print_fmt = strstr(format, "\nprint fmt:"), *at = format;
	enum event_field_kind kind = EVENT_FIELD_MISSING;
	const struct span wanted = { name, len };
	struct field f;

	/* The kernel takes the event's own field first. Of two with one name both must be open. */
	while (event_field_take(&f, &at)) {
		if (f.name.len != len || memcmp(f.name.text, name, len) != 0)
			continue;
		kind = field_judge(&f, print_fmt ?: "");
		if (kind != EVENT_FIELD_OPEN)
			return kind;
	}
	return kind == EVENT_FIELD_MISSING ? generic_judge(wanted) : kind;
}

const char *event_field_reason(enum event_field_kind kind)
{
	switch (kind) {
	case EVENT_FIELD_OPEN:
		return "is open";
	case EVENT_FIELD_MISSING:
		return "is no field of this event";
	case EVENT_FIELD_POINTER:
		return "is a pointer";
	case EVENT_FIELD_STACK:
		return "holds addresses";
	case EVENT_FIELD_COMPOUND:
		return "is an array or a structure, which may hold addresses";
	case EVENT_FIELD_NAMED:
	case EVENT_FIELD_PRINTED:
		return "is an address";
	case EVENT_FIELD_NOT_SHOWN:
		return "may be an address: the event's text does not show its value";
	}
	return "is unknown";
}

size_t event_field_next(const char **at, const char **ret_name)
{
	struct field f;

	if (!event_field_take(&f, at))
		return 0;
	*ret_name = f.name.text;
	return f.name.len;
}

static bool span_has(struct span s, const char *text)
{
	return memmem(s.text, s.len, text, strlen(text));
}

static bool type_is_compound(struct span type)
{
	return (span_begins(type, "struct ") || span_begins(type, "union ")) &&
	       !memchr(type.text, '*', type.len);
}

static enum event_field_filter field_filter(const struct field *f)
{
	bool located = span_has(f->type, "__data_loc ") || span_has(f->type, "__rel_loc ");
	bool array = f->is_array || memchr(f->type.text, '[', f->type.len);

	if (located && span_has(f->type, "cpumask_t"))
		return EVENT_FILTER_CPUS;
	if ((array && span_has(f->type, "char")) || span_is(f->type, "char *") ||
	    span_is(f->type, "const char *"))
		return EVENT_FILTER_TEXT;
	/* The kernel compares these fields, too, but not what is in them. */
	if (array || located || type_is_compound(f->type))
		return EVENT_FILTER_NONE;
	return f->size == 1 || f->size == 2 || f->size == 4 || f->size == 8 ? EVENT_FILTER_NUMBER
									    : EVENT_FILTER_NONE;
}

bool event_field_describe(const char **at, struct event_field *ret)
{
	struct field f;

	if (!event_field_take(&f, at))
		return false;
	*ret = (struct event_field){
		.name = f.name.text,
		.name_len = f.name.len,
		.type = f.type.text,
		.type_len = f.type.len,
		.array = f.array.text,
		.array_len = f.array.len,
		.size = f.size,
		.is_signed = f.is_signed,
		.filter = field_filter(&f),
	};
	return true;
}

const char *const *event_field_operators(enum event_field_filter filter)
{
	static const char *const none[] = { NULL };
	static const char *const number[] = { "==", "!=", "<", "<=", ">", ">=", "&", NULL };
	static const char *const text[] = { "==", "!=", "~", NULL };
	static const char *const cpus[] = { "==", "!=", "&", NULL };

	switch (filter) {
	case EVENT_FILTER_NUMBER:
		return number;
	case EVENT_FILTER_TEXT:
		return text;
	case EVENT_FILTER_CPUS:
		return cpus;
	case EVENT_FILTER_NONE:
		break;
	}
	return none;
}
