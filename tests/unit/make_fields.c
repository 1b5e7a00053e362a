/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random_series.h"

#define ID_FIELDS 305

/* A format built field by field, with C's layout. */
struct layout {
	struct buf fields;
	uint32_t end;
};

static void add(struct layout *l, const char *type, const char *name, uint32_t align, uint32_t size,
		bool is_signed)
{
	l->end = (l->end + align - 1) / align * align;
	buf_printf(&l->fields, "\tfield:%s %s;\toffset:%u;\tsize:%u;\tsigned:%d;\n", type, name,
		   l->end, size, is_signed);
	l->end += size;
}

void maker_fields(struct maker *m)
{
	struct layout l = { .end = 8 };
	uint32_t word = m->word_size;

	add(&l, "s8", "a", 1, 1, true);
	add(&l, "u8", "b", 1, 1, false);
	add(&l, "s16", "c", 2, 2, true);
	add(&l, "u16", "d", 2, 2, false);
	add(&l, "s32", "e", 4, 4, true);
	add(&l, "u32", "f", 4, 4, false);
	add(&l, "s64", "g", 8, 8, true);
	add(&l, "u64", "h", 8, 8, false);
	add(&l, "long", "i", word, word, true);
	add(&l, "void *", "ptr", word, word, false);
	add(&l, "unsigned long", "site", word, word, false);
	add(&l, "char", "text[16]", 1, 16, true);
	add(&l, "u32", "nums[3]", 4, 12, false);
	add(&l, "__data_loc char[]", "dyn", 4, 4, true);
	add(&l, "__data_loc u16[]", "list", 4, 4, false);
	add(&l, "__data_loc cpumask_t", "mask", 4, 4, false);
	add(&l, "__rel_loc char[]", "rel", 4, 4, true);
	maker_format(m, "test", "fields", ID_FIELDS, buf_string(&l.fields),
		     "\"a=%d b=%u c=%d d=%u e=%d f=%u g=%lld h=%llu i=%ld ptr=%p site=%pS text=%s "
		     "nums=%s dyn=%s list=%s mask=%s rel=%s\", REC->a, REC->b, REC->c, REC->d, "
		     "REC->e, REC->f, REC->g, REC->h, REC->i, REC->ptr, (void *)REC->site, "
		     "REC->text, __print_array(REC->nums, 3, 4), __get_str(dyn), "
		     "__print_array(__get_dynamic_array(list), __get_dynamic_array_len(list) / 2, "
		     "2), __get_cpumask(mask), __get_rel_str(rel)");
	buf_deinit(&l.fields);
	maker_symbols(m, word == 8 ? "ffffffff81000000 T first\n"
				     "ffffffff81000100 T second\n"
				     "ffffffff81000200 t third\t[module]\n"
				     "ffffffff81000300 T end\n"
				   : "81000000 T first\n81000100 T second\n"
				     "81000200 t third\t[module]\n"
				     "81000300 T end\n");
}

static void align(struct buf *b, size_t to)
{
	while ((b->len + 8) % to)
		buf_putc(b, '\0');
}

/* A number at a limit of a width or a sign. */
static uint64_t any_number(uint64_t *random)
{
	static const uint64_t edges[] = {
		0,	    1,	       127,	  128,	     255,
		32767,	    32768,     65535,	  INT32_MAX, UINT32_C(1) << 31,
		UINT32_MAX, INT64_MAX, UINT64_MAX
	};
	uint64_t r = random_next(random);

	/* Never a number that looks like a kernel address: the output hides those. */
	return r % 4 ? r >> 1 >> r % 40 : edges[r / 4 % ARRAY_SIZE(edges)];
}

static void put_text(uint64_t *random, char *out, size_t max)
{
	size_t len = (size_t)random_next(random) % max;

	for (size_t i = 0; i < len; i++)
		out[i] = (char)('a' + random_next(random) % 26);
	out[len] = '\0';
}

void event_fields(struct maker *m, uint64_t ts, uint64_t *random)
{
	struct buf b = BUF_INIT, dynamic = BUF_INIT;
	uint64_t kernel = m->word_size == 8 ? UINT64_C(0xffffffff81000000) : 0x81000000;
	char text[16] = "", dyn[40], rel[24];
	unsigned count = (unsigned)(random_next(random) % 5);
	size_t locations, rest;
	uint32_t at;

	for (unsigned size = 1; size <= 8; size *= 2)
		for (unsigned i = 0; i < 2; i++) {
			uint64_t v = any_number(random);

			align(&b, size);
			if (size == 1)
				buf_putc(&b, (char)v);
			else if (size == 2)
				maker_u16(m, &b, (uint16_t)v);
			else if (size == 4)
				maker_u32(m, &b, (uint32_t)v);
			else
				maker_u64(m, &b, v);
		}
	maker_word(m, &b, any_number(random));
	maker_word(m, &b, random_next(random) % 8 ? kernel + random_next(random) % 0x300 : 0);
	maker_word(m, &b, kernel + random_next(random) % 0x300);
	put_text(random, text, sizeof(text));
	buf_append(&b, text, sizeof(text));
	for (unsigned i = 0; i < 3; i++)
		maker_u32(m, &b, (uint32_t)any_number(random));
	put_text(random, dyn, sizeof(dyn));
	put_text(random, rel, sizeof(rel));
	locations = b.len;
	at = (uint32_t)(8 + b.len + 4 * 4);
	maker_u32(m, &b, at | (uint32_t)(strlen(dyn) + 1) << 16);
	buf_append(&dynamic, dyn, strlen(dyn) + 1);
	while (dynamic.len % 8)
		buf_putc(&dynamic, 0);
	maker_u32(m, &b, (at + (uint32_t)dynamic.len) | (2 * count) << 16);
	for (unsigned i = 0; i < count; i++)
		maker_u16(m, &dynamic, (uint16_t)random_next(random));
	while (dynamic.len % 8)
		buf_putc(&dynamic, 0);
	maker_u32(m, &b, (at + (uint32_t)dynamic.len) | 8 << 16);
	/* At least two bits of 64, stored as longs. */
	if (m->word_size == 8) {
		maker_u64(m, &dynamic, random_next(random) & random_next(random));
	} else {
		maker_u32(m, &dynamic, (uint32_t)random_next(random));
		maker_u32(m, &dynamic, (uint32_t)random_next(random));
	}
	rest = dynamic.len;
	buf_append(&dynamic, rel, strlen(rel) + 1);
	/* Relative to the end of the field itself, which is the last one. */
	maker_u32(m, &b, (uint32_t)rest | (uint32_t)(strlen(rel) + 1) << 16);
	assert_int_equal(b.len, locations + 16);
	buf_append(&b, dynamic.data, dynamic.len);
	maker_event(m, ts, ID_FIELDS, 7, b.data, b.len);
	buf_deinit(&b);
	buf_deinit(&dynamic);
}
