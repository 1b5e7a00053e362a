/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* BTF as Documentation/bpf/btf.rst describes it; every offset is checked. */
#include "daemon/capture/names/btf.h"

#include <string.h>

enum {
	BTF_KIND_INT = 1,
	BTF_KIND_PTR = 2,
	BTF_KIND_ARRAY = 3,
	BTF_KIND_STRUCT = 4,
	BTF_KIND_UNION = 5,
	BTF_KIND_ENUM = 6,
	BTF_KIND_FWD = 7,
	BTF_KIND_TYPEDEF = 8,
	BTF_KIND_VOLATILE = 9,
	BTF_KIND_CONST = 10,
	BTF_KIND_RESTRICT = 11,
	BTF_KIND_FUNC = 12,
	BTF_KIND_FUNC_PROTO = 13,
	BTF_KIND_VAR = 14,
	BTF_KIND_DATASEC = 15,
	BTF_KIND_FLOAT = 16,
	BTF_KIND_DECL_TAG = 17,
	BTF_KIND_TYPE_TAG = 18,
	BTF_KIND_ENUM64 = 19,
};

struct btf_view {
	const uint8_t *types, *types_end;
	const char *strings;
	size_t strings_len;
	bool swap;
};

static uint32_t btf_get32(const struct btf_view *v, const uint8_t *p)
{
	uint32_t x;

	memcpy(&x, p, 4);
	return v->swap ? __builtin_bswap32(x) : x;
}

static int btf_view_init(struct btf_view *v, const void *btf, size_t size)
{
	const uint8_t *p = btf;
	uint64_t head, type_off, type_len, str_off, str_len;
	uint16_t magic;

	if (size < 24)
		return -EBADMSG;
	memcpy(&magic, p, 2);
	if (magic != 0xeb9f && magic != 0x9feb)
		return -EBADMSG;
	v->swap = magic == 0x9feb;
	head = btf_get32(v, p + 4);
	type_off = head + btf_get32(v, p + 8);
	type_len = btf_get32(v, p + 12);
	str_off = head + btf_get32(v, p + 16);
	str_len = btf_get32(v, p + 20);
	if (type_off + type_len > size || str_off + str_len > size || !str_len ||
	    p[str_off + str_len - 1])
		return -EBADMSG;
	v->types = p + type_off;
	v->types_end = v->types + type_len;
	v->strings = (const char *)p + str_off;
	v->strings_len = (size_t)str_len;
	return 0;
}

/* Bytes after a type's 12-byte header. */
static size_t btf_extra_size(uint32_t info)
{
	size_t vlen = info & 0xffff;

	switch (info >> 24 & 0x1f) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return 12;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		return vlen * 12;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return vlen * 8;
	default:
		return 0;
	}
}

static int btf_compare(const void *key, const void *item)
{
	return strcmp(key, *(const char *const *)item);
}

/* Appends a structure's size, which pointer arithmetic needs. */
static void btf_resolve_struct(const struct btf_view *v, uint32_t name_off, uint32_t size,
			       const char *const *names, size_t count, struct buf *out)
{
	const char *name = name_off < v->strings_len ? v->strings + name_off : "";

	if (*name && bsearch(name, names, count, sizeof(*names), btf_compare))
		buf_printf(out, "struct:%s %u\n", name, size);
}

/* Resolves one enumerator. seen: names that are resolved already. */
static void btf_resolve_enumerator(const struct btf_view *v, uint32_t name_off, int64_t value,
				   bool is_unsigned, const char *const *names, size_t count,
				   bool *seen, struct buf *out)
{
	const char *const *hit;
	const char *name;

	if (name_off >= v->strings_len)
		return;
	name = v->strings + name_off;
	hit = bsearch(name, names, count, sizeof(*names), btf_compare);
	if (!hit || seen[hit - names])
		return;
	seen[hit - names] = true;
	if (is_unsigned)
		buf_printf(out, "%s %llu\n", name, (unsigned long long)value);
	else
		buf_printf(out, "%s %lld\n", name, (long long)value);
}

int btf_resolve_enums(const void *btf, size_t size, const char *const *names, size_t count,
		      struct buf *out)
{
	struct btf_view v;
	_cleanup_free_ bool *seen = calloc(count + 1, sizeof(*seen));

	if (!seen)
		return -ENOMEM;
	if (btf_view_init(&v, btf, size) < 0)
		return -EBADMSG;
	for (const uint8_t *p = v.types; p < v.types_end;) {
		uint32_t info, kind, vlen;
		size_t extra, step;
		bool is_signed;

		if (v.types_end - p < 12)
			return -EBADMSG;
		info = btf_get32(&v, p + 4);
		extra = btf_extra_size(info);
		p += 12;
		if ((size_t)(v.types_end - p) < extra)
			return -EBADMSG;
		kind = info >> 24 & 0x1f;
		vlen = info & 0xffff;
		is_signed = info >> 31;
		if (kind == BTF_KIND_STRUCT)
			btf_resolve_struct(&v, btf_get32(&v, p - 12), btf_get32(&v, p - 4), names,
					   count, out);
		step = kind == BTF_KIND_ENUM64 ? 12 : 8;
		for (uint32_t i = 0; (kind == BTF_KIND_ENUM || kind == BTF_KIND_ENUM64) && i < vlen;
		     i++) {
			const uint8_t *e = p + i * step;
			uint64_t low = btf_get32(&v, e + 4);
			uint64_t high = kind == BTF_KIND_ENUM64	 ? btf_get32(&v, e + 8)
					: is_signed && low >> 31 ? UINT32_MAX
								 : 0;

			btf_resolve_enumerator(&v, btf_get32(&v, e), (int64_t)(high << 32 | low),
					       !is_signed, names, count, seen, out);
		}
		p += extra;
	}
	return buf_error(out);
}

/* BTF types, indexed by id, to describe functions' arguments. */
struct type_list {
	struct btf_view view;
	const struct type_list *base; /* of the kernel, for a module; NULL: none */
	uint32_t first;		      /* ids before it are the base's */
	uint32_t *offsets;	      /* offset of type id at index id - first; owned */
	bool *written;		      /* enumerations already written; owned */
	uint32_t count;
};

static void type_list_deinit(struct type_list *l)
{
	free(l->offsets);
	free(l->written);
}

static int type_list_init(struct type_list *l, const void *btf, size_t size,
			  const struct type_list *base)
{
	struct btf_view *v = &l->view;
	size_t cap;

	if (btf_view_init(v, btf, size) < 0 || (base && base->view.swap != v->swap))
		return -EBADMSG;
	l->base = base;
	l->first = base ? base->count + 1 : 1;
	cap = (size_t)(v->types_end - v->types) / 12;
	l->offsets = calloc(cap + 1, sizeof(*l->offsets));
	l->written = calloc(cap + 1, sizeof(*l->written));
	if (!l->offsets || !l->written)
		return -ENOMEM;
	for (const uint8_t *p = v->types; p < v->types_end;) {
		size_t extra;

		if (v->types_end - p < 12)
			return -EBADMSG;
		extra = btf_extra_size(btf_get32(v, p + 4));
		if ((size_t)(v->types_end - p) - 12 < extra)
			return -EBADMSG;
		l->offsets[l->count++] = (uint32_t)(p - v->types);
		p += 12 + extra;
	}
	return 0;
}

static uint32_t type_kind(const struct type_list *l, const uint8_t *type)
{
	return type ? btf_get32(&l->view, type + 4) >> 24 & 0x1f : 0;
}

static uint32_t type_length(const struct type_list *l, const uint8_t *type)
{
	return btf_get32(&l->view, type + 4) & 0xffff;
}

/* NULL: void, or no such type. */
static const uint8_t *type_by_id(const struct type_list *l, uint32_t id)
{
	if (l->base && id < l->first)
		l = l->base;
	return id >= l->first && id - l->first < l->count
		       ? l->view.types + l->offsets[id - l->first]
		       : NULL;
}

static const char *type_name(const struct type_list *l, uint32_t offset)
{
	if (l->base && offset < l->base->view.strings_len)
		return l->base->view.strings + offset;
	offset -= l->base ? (uint32_t)l->base->view.strings_len : 0;
	return offset < l->view.strings_len ? l->view.strings + offset : "";
}

/* Follows const, volatile and typedefs to the underlying type. */
static const uint8_t *skip_modifiers(const struct type_list *l, uint32_t *id)
{
	const uint8_t *type = type_by_id(l, *id);

	for (int i = 0; i < 32; i++) {
		switch (type_kind(l, type)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG:
			*id = btf_get32(&l->view, type + 8);
			type = type_by_id(l, *id);
			break;
		default:
			return type;
		}
	}
	return NULL;
}

/* Writes "enum ID NAME=VALUE ...", once for each enumeration. */
static void btf_put_enum(struct type_list *l, uint32_t id, const uint8_t *type, struct buf *out)
{
	if (l->written[id - 1])
		return;
	l->written[id - 1] = true;
	buf_printf(out, "enum %u", id);
	for (uint32_t i = 0; i < type_length(l, type); i++) {
		const uint8_t *e = type + 12 + (size_t)8 * i;

		buf_printf(out, " %s=%d", type_name(l, btf_get32(&l->view, e)),
			   (int32_t)btf_get32(&l->view, e + 4));
	}
	buf_putc(out, '\n');
}

static void btf_put_type(const struct type_list *l, uint32_t id, const uint8_t *type,
			 struct buf *out)
{
	static const char *const names[] = {
		[BTF_KIND_STRUCT] = "STRUCT", [BTF_KIND_UNION] = "UNION",   [BTF_KIND_FWD] = "FWD",
		[BTF_KIND_FLOAT] = "FLOAT",   [BTF_KIND_ENUM64] = "ENUM64",
	};
	uint32_t kind = type_kind(l, type);

	if (kind == BTF_KIND_PTR)
		buf_putc(out, 'p');
	else if (kind == BTF_KIND_INT)
		buf_putc(out, btf_get32(&l->view, type + 12) >> 24 & 1 ? 'i' : 'u');
	else if (kind == BTF_KIND_ENUM)
		buf_printf(out, "e%u", id);
	else if (kind < ARRAY_SIZE(names) && names[kind])
		buf_printf(out, "s%u/%s", btf_get32(&l->view, type + 8), names[kind]);
	else
		buf_putc(out, '?');
}

static void btf_put_function(struct type_list *l, const uint8_t *function, struct buf *out)
{
	const uint8_t *proto = type_by_id(l, btf_get32(&l->view, function + 8));
	uint32_t count;

	if (type_kind(l, proto) != BTF_KIND_FUNC_PROTO)
		return;
	count = type_length(l, proto);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t id = btf_get32(&l->view, proto + 12 + (size_t)8 * i + 4);
		const uint8_t *type = skip_modifiers(l, &id);

		if (type_kind(l, type) == BTF_KIND_ENUM)
			btf_put_enum(l, id, type, out);
	}
	buf_puts(out, type_name(l, btf_get32(&l->view, function)));
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *param = proto + 12 + (size_t)8 * i;
		uint32_t id = btf_get32(&l->view, param + 4);
		const uint8_t *type = skip_modifiers(l, &id);

		buf_printf(out, " %s:", type_name(l, btf_get32(&l->view, param)));
		btf_put_type(l, id, type, out);
	}
	buf_putc(out, '\n');
}

int btf_describe_arguments(const void *btf, size_t size, struct buf *out)
{
	_cleanup_(type_list_deinit) struct type_list l = { 0 };
	int r = type_list_init(&l, btf, size, NULL);

	for (uint32_t id = 1; r == 0 && id <= l.count; id++) {
		const uint8_t *type = type_by_id(&l, id);

		if (type_kind(&l, type) == BTF_KIND_FUNC)
			btf_put_function(&l, type, out);
	}
	return r < 0 ? r : buf_error(out);
}

struct btf_functions {
	struct type_list types;
	struct function {
		const char *name;
		uint32_t proto;
	} * items; /* owned */
	size_t count;
};

struct btf_functions *btf_functions_free(struct btf_functions *f)
{
	if (!f)
		return NULL;
	type_list_deinit(&f->types);
	free(f->items);
	free(f);
	return NULL;
}

static int compare_functions(const void *a, const void *b)
{
	return strcmp(((const struct function *)a)->name, ((const struct function *)b)->name);
}

int btf_functions_new(struct btf_functions **ret, const void *btf, size_t size,
		      const struct btf_functions *base)
{
	_cleanup_(btf_functions_freep) struct btf_functions *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	r = type_list_init(&f->types, btf, size, base ? &base->types : NULL);
	if (r < 0)
		return r;
	f->items = calloc(f->types.count + 1, sizeof(*f->items));
	if (!f->items)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->types.count; i++) {
		const uint8_t *type = type_by_id(&f->types, f->types.first + i);
		uint32_t proto = type ? btf_get32(&f->types.view, type + 8) : 0;

		if (type_kind(&f->types, type) == BTF_KIND_FUNC &&
		    type_kind(&f->types, type_by_id(&f->types, proto)) == BTF_KIND_FUNC_PROTO)
			f->items[f->count++] = (struct function){
				.name = type_name(&f->types, btf_get32(&f->types.view, type)),
				.proto = proto,
			};
	}
	qsort(f->items, f->count, sizeof(*f->items), compare_functions);
	*ret = TAKE_PTR(f);
	return 0;
}

size_t btf_functions_count(const struct btf_functions *f)
{
	return f->count;
}

const char *btf_functions_name(const struct btf_functions *f, size_t i)
{
	return f->items[i].name;
}

/* Appends a type as in a declaration, and returns the number of its pointers, to follow it. */
static unsigned btf_put_declared(const struct type_list *l, uint32_t id, struct buf *out)
{
	unsigned pointers = 0;

	/* Types may form a circle only in damaged BTF. */
	for (int i = 0; i < 32; i++) {
		const uint8_t *type = type_by_id(l, id);
		uint32_t kind = type_kind(l, type);
		const char *name;

		if (!type) {
			buf_puts(out, "void");
			return pointers;
		}
		name = type_name(l, btf_get32(&l->view, type));
		switch (kind) {
		case BTF_KIND_PTR:
			pointers++;
			break;
		case BTF_KIND_CONST:
			/* A pointer's own const matters to nobody who reads an argument. */
			if (type_kind(l, type_by_id(l, btf_get32(&l->view, type + 8))) !=
			    BTF_KIND_PTR)
				buf_puts(out, "const ");
			break;
		case BTF_KIND_VOLATILE:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG:
			break;
		case BTF_KIND_STRUCT:
		case BTF_KIND_UNION:
		case BTF_KIND_FWD:
		case BTF_KIND_ENUM:
		case BTF_KIND_ENUM64:
			buf_printf(out, "%s %s",
				   kind == BTF_KIND_UNION			   ? "union"
				   : kind >= BTF_KIND_ENUM && kind != BTF_KIND_FWD ? "enum"
										   : "struct",
				   *name ? name : "{...}");
			return pointers;
		case BTF_KIND_FUNC_PROTO:
			buf_puts(out, "function");
			return pointers;
		default:
			buf_puts(out, *name ? name : "?");
			return pointers;
		}
		id = btf_get32(&l->view, type + 8);
	}
	buf_puts(out, "?");
	return pointers;
}

static void btf_put_declaration(const struct type_list *l, uint32_t id, const char *name,
				struct buf *out)
{
	unsigned pointers = btf_put_declared(l, id, out);

	if (*name || pointers)
		buf_putc(out, ' ');
	while (pointers--)
		buf_putc(out, '*');
	buf_puts(out, name);
}

bool btf_functions_put(const struct btf_functions *f, const char *name, const char *shown,
		       bool bare, struct buf *out)
{
	const struct function key = { .name = name };
	const struct function *found =
		bsearch(&key, f->items, f->count, sizeof(*f->items), compare_functions);
	const struct type_list *l = &f->types;
	const uint8_t *proto;
	uint32_t count;

	if (!found)
		return false;
	proto = type_by_id(l, found->proto);
	if (!proto)
		return false;
	count = type_length(l, proto);
	if (bare)
		buf_puts(out, shown);
	else
		btf_put_declaration(l, btf_get32(&l->view, proto + 8), shown, out);
	buf_putc(out, '(');
	for (uint32_t i = bare; i < count; i++) {
		const uint8_t *param = proto + 12 + (size_t)8 * i;
		uint32_t id = btf_get32(&l->view, param + 4);

		buf_puts(out, i > bare ? ", " : "");
		/* The last one of "...". */
		if (!id)
			buf_puts(out, "...");
		else
			btf_put_declaration(l, id, type_name(l, btf_get32(&l->view, param)), out);
	}
	buf_puts(out, count > bare ? ")" : "void)");
	return true;
}
