/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two printers, one text: the input's bytes choose a print fmt from what libtraceevent is known to
 * print like the kernel, and a record's content. Our program and libtraceevent must print the same.
 */
#include "fuzz.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "by_library.h"

#define ID 7

static const char head[] =
	"name: any\nID: 7\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n"
	"\tfield:u16 b;\toffset:10;\tsize:2;\tsigned:0;\n"
	"\tfield:u32 c;\toffset:12;\tsize:4;\tsigned:0;\n"
	"\tfield:u64 d;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:int e;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:bool f;\toffset:28;\tsize:1;\tsigned:0;\n"
	"\tfield:long g;\toffset:32;\tsize:8;\tsigned:1;\n"
	"\tfield:char comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
	"\tfield:__data_loc char[] s;\toffset:56;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc u32[] n;\toffset:60;\tsize:4;\tsigned:0;\n"
	"\tfield:u8 raw[8];\toffset:64;\tsize:8;\tsigned:0;\n"
	"\tfield:__rel_loc char[] r;\toffset:72;\tsize:4;\tsigned:0;\n\n"
	"print fmt: \"";

/* After its end the input continues with zeros. */
struct input {
	const uint8_t *at, *end;
};

static uint64_t draw(void *userdata)
{
	struct input *in = userdata;
	uint64_t v = 0;
	size_t n = MIN((size_t)(in->end - in->at), (size_t)2);

	memcpy(&v, in->at, n);
	in->at += n;
	/* Makes wide values from few bytes. */
	return v | v << 37;
}

static unsigned choose(struct input *in, unsigned count)
{
	uint8_t byte = in->at < in->end ? *in->at++ : 0;

	return byte % count;
}

static const char *one_of(struct input *in, const char *const *texts, unsigned count)
{
	return texts[choose(in, count)];
}

#define ONE_OF(in, texts) one_of(in, texts, ARRAY_SIZE(texts))

static void put_padding(struct input *in, struct buf *out)
{
	static const char *const flags[] = { "", "0", "-", "", "0", "" };

	buf_puts(out, ONE_OF(in, flags));
	buf_printf(out, "%u", choose(in, 20) + 1);
}

/* A conversion and its argument. */
static void put_integer(struct input *in, struct buf *format, struct buf *args)
{
	static const struct {
		const char *field, *size, *kinds[4];
	} fields[] = {
		{ "a", "", { "d", "u", "x", "X" } },  { "b", "", { "d", "u", "x", "X" } },
		{ "c", "", { "u", "x", "X", "d" } },  { "d", "ll", { "u", "x", "X", "d" } },
		{ "e", "", { "d", "u", "x", "d" } },  { "f", "", { "d", "u", "x", "d" } },
		{ "g", "l", { "d", "u", "x", "X" } },
	};
	unsigned i = choose(in, ARRAY_SIZE(fields));

	buf_putc(format, '%');
	if (choose(in, 2))
		put_padding(in, format);
	buf_printf(format, "%s%s", fields[i].size, fields[i].kinds[choose(in, 4)]);
	buf_printf(args, ", REC->%s", fields[i].field);
}

static void put_expression(struct input *in, struct buf *format, struct buf *args)
{
	static const char *const fields[] = { "a", "b", "c" };
	static const char *const ops[] = { "&", "|", ">>", "+", "*", "==", "!=", "<", ">" };
	const char *field = ONE_OF(in, fields), *op = ONE_OF(in, ops);
	unsigned n = choose(in, 256);

	if (*op == '>' && op[1])
		n %= 8;
	/* libtraceevent does not wrap values beyond 32 bits, as C and the kernel do. */
	if (strchr("+*", *op) && *field == 'c')
		field = "b";
	if (choose(in, 2)) {
		buf_puts(format, "%u");
		buf_printf(args, ", (REC->%s %s %u)", field, op, n);
	} else {
		buf_puts(format, "%s");
		buf_printf(args, ", REC->%s %s %u ? \"yes\" : \"no\"", field, op, n);
	}
}

static void put_text(struct input *in, struct buf *format, struct buf *args)
{
	static const char *const texts[] = { "REC->comm", "__get_str(s)", "__get_rel_str(r)" };
	static const char *const widths[] = { "", "3", "-20", "20", "" };

	buf_printf(format, "%%%ss", ONE_OF(in, widths));
	buf_printf(args, ", %s", ONE_OF(in, texts));
}

static void put_helper(struct input *in, struct buf *format, struct buf *args)
{
	static const char *const helpers[] = {
		"__print_symbolic(REC->c, { 0, \"zero\" }, { 1, \"one\" }, { 0x80000000, \"top\" "
		"})",
		"__print_symbolic(REC->d, { 7, \"seven\" }, { 15, \"last\" })",
		"__print_flags(REC->c, \"|\", { 1, \"A\" }, { 2, \"B\" }, { 12, \"CD\" })",
		"__print_flags(REC->d & 0xff, \"\", { 0x10, \"x\" }, { 0x80, \"y\" })",
		"__print_hex(REC->raw, 8)",
		"__print_hex_str(REC->raw, 8)",
	};

	buf_puts(format, "%s");
	buf_printf(args, ", %s", ONE_OF(in, helpers));
}

static void put_literal(struct input *in, struct buf *format)
{
	static const char *const literals[] = { " ", "=", ", ", "[", "]: ", "%%", "name=", "\\\"" };

	buf_puts(format, ONE_OF(in, literals));
}

static void put_print_fmt(struct input *in, struct buf *out)
{
	_cleanup_buf_ struct buf args = BUF_INIT;
	unsigned count = choose(in, 8) + 1;

	for (unsigned i = 0; i < count; i++) {
		put_literal(in, out);
		switch (choose(in, 5)) {
		case 0:
			put_integer(in, out, &args);
			break;
		case 1:
			put_expression(in, out, &args);
			break;
		case 2:
			put_text(in, out, &args);
			break;
		case 3:
			put_helper(in, out, &args);
			break;
		default:
			break;
		}
	}
	buf_putc(out, '"');
	buf_append(out, args.data, args.len);
	buf_putc(out, '\n');
}

static void compare(const struct event *ev, struct printer *p, struct by_library *library,
		    const struct record *rec, const char *format)
{
	_cleanup_buf_ struct buf ours = BUF_INIT, theirs = BUF_INIT;
	static const char name[] = "any: ";

	if (event_print(p, ev, rec, &ours) < 0 || !by_library_print(library, ID, rec, &theirs) ||
	    !buf_string(&ours) || !buf_string(&theirs))
		abort();
	without_signs(&ours);
	without_signs(&theirs);
	if (strncmp(ours.data, name, strlen(name)) == 0 &&
	    strcmp(ours.data + strlen(name), theirs.data) == 0)
		return;
	fprintf(stderr, "%s%s\n     %s\n", strstr(format, "print fmt"), ours.data, theirs.data);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct event_table_env env = { .word_size = 8, .pointers = POINTER_RAW };
	struct input in = { data, data + size };
	_cleanup_(event_table_freep) struct event_table *table = NULL;
	_cleanup_(by_library_freep) struct by_library *library = NULL;
	_cleanup_(printer_freep) struct printer *p = NULL;
	_cleanup_buf_ struct buf format = BUF_INIT;
	static uint8_t record[RECORD_MAX];
	const struct event *ev;

	buf_puts(&format, head);
	put_print_fmt(&in, &format);
	if (!buf_string(&format) || by_library_new(&library) < 0 ||
	    event_table_new(&table, &env) < 0 ||
	    event_table_add(table, "fuzz", format.data, format.len, NULL) < 0 ||
	    event_table_seal(table, NULL) < 0 || printer_new(&p, table) < 0)
		abort();
	ev = event_table_find(table, ID);
	if (!ev->program || !by_library_add(library, "fuzz", format.data, format.len, NULL))
		abort();
	for (unsigned i = 0; i < 4; i++) {
		enum wildness wild = (enum wildness)choose(&in, WILD_KINDS);
		struct record rec = { .data = record };

		rec.len = make_record(ev, wild, draw, &in, record);
		compare(ev, p, library, &rec, format.data);
	}
	return 0;
}
