/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/annotation.h"

#include "formats/perfetto/numbers.h"

static void annotation_put_name(struct buf *out, struct text name, struct pf_interner *names,
				struct buf *fresh)
{
	uint64_t iid = pf_intern(names, name, fresh);

	if (iid)
		pf_uint(out, ANNOTATION_NAME_IID, iid);
	else
		pf_text(out, ANNOTATION_NAME, name.len ? name : TEXT("?"));
}

static void annotation_put_value(struct buf *out, const struct value *v)
{
	switch (v->type) {
	case VALUE_FALSE:
	case VALUE_TRUE:
		pf_uint(out, ANNOTATION_BOOL, v->type == VALUE_TRUE);
		break;
	case VALUE_INT:
		pf_uint(out, ANNOTATION_INT, (uint64_t)v->i);
		break;
	case VALUE_UINT:
		pf_uint(out, ANNOTATION_UINT, v->u);
		break;
	case VALUE_POINTER:
		pf_uint(out, ANNOTATION_POINTER, v->u);
		break;
	case VALUE_DOUBLE:
		pf_double(out, ANNOTATION_DOUBLE, v->d);
		break;
	case VALUE_STRING:
		pf_text(out, ANNOTATION_STRING, v->text);
		break;
	default:
		pf_text(out, ANNOTATION_STRING, TEXT("null"));
	}
}

void pf_annotations(struct buf *out, uint32_t field, struct text members, struct pf_interner *names,
		    struct buf *fresh)
{
	struct {
		size_t content;
		uint32_t of_members; /* field number of its members */
	} open[VALUE_DEPTH_MAX];
	struct value_iter it;
	struct value v;
	unsigned depth = 0;

	value_iter_init(&it, members, true);
	while (value_next(&it, &v)) {
		size_t content;

		if (v.type == VALUE_END) {
			pf_close(out, open[--depth].content);
			continue;
		}
		content = pf_open(out, depth ? open[depth - 1].of_members : field);
		if (v.key.data)
			annotation_put_name(out, v.key, names, fresh);
		if (v.type == VALUE_LIST || v.type == VALUE_DICT) {
			open[depth].content = content;
			open[depth++].of_members = v.type == VALUE_DICT ? ANNOTATION_DICT_ENTRIES
									: ANNOTATION_ARRAY_VALUES;
			continue;
		}
		annotation_put_value(out, &v);
		pf_close(out, content);
	}
	/* Truncated values: close what is open. */
	while (depth)
		pf_close(out, open[--depth].content);
}

void pf_annotation_text(struct buf *out, uint32_t field, struct text name, struct text value,
			struct pf_interner *names, struct buf *fresh)
{
	size_t content = pf_open(out, field);

	annotation_put_name(out, name, names, fresh);
	pf_text(out, ANNOTATION_STRING, value);
	pf_close(out, content);
}
