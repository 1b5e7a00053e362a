/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COMMON                                                                                     \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                     \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"             \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

const struct event_table_env native = { .word_size = 8, .pointers = POINTER_RAW };

struct symbols *table_symbols(void *userdata _unused_)
{
	static const char kallsyms[] = "ffffffff81000000 T _stext\nffffffff81001000 T func\n"
				       "ffffffff81002000 T _etext\n";
	struct symbols *symbols;

	assert_int_equal(symbols_new(&symbols, kallsyms, strlen(kallsyms)), 0);
	return symbols;
}

struct event_table *make_table(const char *system, const char *name, const char *fields,
			       const char *print_fmt, const struct event_table_env *env)
{
	static const char printk[] = "0xffffff5040302010 : \"kernel \\\"text\\\"\"\n";
	static const char constants[] = "KNOWN 7\nBIG 4294967295\nMINUS -1\nHZ 250\n";
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct event_table *t;

	buf_printf(&text, "name: %s\nID: 500\nformat:\n" COMMON "%s\nprint fmt: %s\n", name, fields,
		   print_fmt);
	assert_int_equal(event_table_new(&t, env), 0);
	assert_int_equal(event_table_add(t, system, text.data, text.len, NULL), 0);
	assert_int_equal(event_table_add_enums(t, constants, strlen(constants)), 0);
	assert_int_equal(event_table_add_printk(t, printk, strlen(printk)), 0);
	event_table_set_symbols(t, table_symbols, NULL);
	assert_int_equal(event_table_seal(t, NULL), 0);
	return t;
}

int table_print(struct event_table *t, const uint8_t *data, uint32_t len, struct buf *out)
{
	const struct event *ev = event_table_find(t, 500);
	struct record rec = { .data = data, .len = len };
	struct printer *p;
	int r;

	assert_non_null(ev);
	assert_int_equal(printer_new(&p, t), 0);
	r = event_print(p, ev, &rec, out);
	assert_int_equal(printer_fallbacks(p), 0);
	printer_free(p);
	return r;
}
