/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* BTF as Documentation/bpf/btf.rst describes it; every offset is checked. */
#include "capture/btf.h"

#include <string.h>

enum {
	BTF_KIND_INT = 1,
	BTF_KIND_ARRAY = 3,
	BTF_KIND_STRUCT = 4,
	BTF_KIND_UNION = 5,
	BTF_KIND_ENUM = 6,
	BTF_KIND_FUNC_PROTO = 13,
	BTF_KIND_VAR = 14,
	BTF_KIND_DATASEC = 15,
	BTF_KIND_DECL_TAG = 17,
	BTF_KIND_ENUM64 = 19,
};

struct btf_view {
	const uint8_t *types, *types_end;
	const char *strings;
	size_t strings_len;
	bool swap;
};

static uint32_t get32(const struct btf_view *v, const uint8_t *p)
{
	uint32_t x;

	memcpy(&x, p, 4);
	return v->swap ? __builtin_bswap32(x) : x;
}

static int view_init(struct btf_view *v, const void *btf, size_t size)
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
	head = get32(v, p + 4);
	type_off = head + get32(v, p + 8);
	type_len = get32(v, p + 12);
	str_off = head + get32(v, p + 16);
	str_len = get32(v, p + 20);
	if (type_off + type_len > size || str_off + str_len > size || !str_len ||
	    p[str_off + str_len - 1])
		return -EBADMSG;
	v->types = p + type_off;
	v->types_end = v->types + type_len;
	v->strings = (const char *)p + str_off;
	v->strings_len = (size_t)str_len;
	return 0;
}

/* Bytes behind a type's twelve. */
static size_t extra_size(uint32_t info)
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

static int compare(const void *key, const void *item)
{
	return strcmp(key, *(const char *const *)item);
}

/* A structure's size, for pointer arithmetic. */
static void resolve_struct(const struct btf_view *v, uint32_t name_off, uint32_t size,
			   const char *const *names, size_t count, struct buf *out)
{
	const char *name = name_off < v->strings_len ? v->strings + name_off : "";

	if (*name && bsearch(name, names, count, sizeof(*names), compare))
		buf_printf(out, "struct:%s %u\n", name, size);
}

/* One enumerator; seen: the names that were found already. */
static void resolve(const struct btf_view *v, uint32_t name_off, int64_t value, bool is_unsigned,
		    const char *const *names, size_t count, bool *seen, struct buf *out)
{
	const char *const *hit;
	const char *name;

	if (name_off >= v->strings_len)
		return;
	name = v->strings + name_off;
	hit = bsearch(name, names, count, sizeof(*names), compare);
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
	if (view_init(&v, btf, size) < 0)
		return -EBADMSG;
	for (const uint8_t *p = v.types; p < v.types_end;) {
		uint32_t info, kind, vlen;
		size_t extra, step;
		bool is_signed;

		if (v.types_end - p < 12)
			return -EBADMSG;
		info = get32(&v, p + 4);
		extra = extra_size(info);
		p += 12;
		if ((size_t)(v.types_end - p) < extra)
			return -EBADMSG;
		kind = info >> 24 & 0x1f;
		vlen = info & 0xffff;
		is_signed = info >> 31;
		if (kind == BTF_KIND_STRUCT)
			resolve_struct(&v, get32(&v, p - 12), get32(&v, p - 4), names, count, out);
		step = kind == BTF_KIND_ENUM64 ? 12 : 8;
		for (uint32_t i = 0; (kind == BTF_KIND_ENUM || kind == BTF_KIND_ENUM64) && i < vlen;
		     i++) {
			const uint8_t *e = p + i * step;
			uint64_t low = get32(&v, e + 4);
			uint64_t high = kind == BTF_KIND_ENUM64	 ? get32(&v, e + 8)
					: is_signed && low >> 31 ? UINT32_MAX
								 : 0;

			resolve(&v, get32(&v, e), (int64_t)(high << 32 | low), !is_signed, names,
				count, seen, out);
		}
		p += extra;
	}
	return buf_error(out);
}
