/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A print fmt, compiled and run. Byte 0: the kind of machine. Byte 1: the number of record bytes
 * that follow. The rest: the text after "print fmt:" of an event with a field of each kind.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "print/program.h"
#include "print/record.h"

static const char format[] =
	"name: any\nID: 7\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:u32 a;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:s8 b;\toffset:12;\tsize:1;\tsigned:1;\n"
	"\tfield:void * p;\toffset:16;\tsize:8;\tsigned:0;\n"
	"\tfield:char comm[16];\toffset:24;\tsize:16;\tsigned:0;\n"
	"\tfield:__data_loc char[] s;\toffset:40;\tsize:4;\tsigned:0;\n"
	"\tfield:__data_loc u32[] n;\toffset:44;\tsize:4;\tsigned:0;\n"
	"\tfield:u8 raw[8];\toffset:48;\tsize:8;\tsigned:0;\n"
	"\tfield:u64 w;\toffset:56;\tsize:8;\tsigned:0;\n\n"
	"print fmt: \"\"\n";

static struct event_table *make_table(unsigned kind)
{
	const struct event_table_env env = { .word_size = kind & 1 ? 4 : 8,
					     .big_endian = kind & 2 };
	struct event_table *t;

	if (event_table_new(&t, &env) < 0 ||
	    event_table_add(t, "fuzz", format, sizeof(format) - 1, NULL) < 0 ||
	    event_table_seal(t, NULL) < 0)
		abort();
	return t;
}

static void run(const struct event_table *t, const struct program *program, const uint8_t *data,
		size_t len)
{
	/* A block of its own, so that a sanitizer sees reads beyond it. */
	uint8_t *copy = malloc(len ?: 1);
	const struct record rec = { .data = copy, .len = (uint32_t)len };
	_cleanup_(printer_freep) struct printer *p = NULL;
	_cleanup_buf_ struct buf out = BUF_INIT;

	if (copy && printer_new(&p, t) == 0) {
		memcpy(copy, data, len);
		program_run(program, p, &rec, &out);
		if (out.len > out.cap)
			abort();
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct event_table *tables[4];
	struct constants constants = { 0 };
	struct arena arena = { 0 };
	struct compile_env env = { .expr = { .constants = &constants, .arena = &arena } };
	const struct program *program;
	const char *why = NULL;
	unsigned kind;
	size_t len;
	char *text;
	int r;

	if (size < 2 || size > 64 << 10)
		return 0;
	kind = data[0] % 4;
	len = data[1] < size - 2 ? data[1] : size - 2;
	if (!tables[kind])
		tables[kind] = make_table(kind);
	env.expr.event = event_table_find(tables[kind], 7);
	env.expr.word_size = kind & 1 ? 4 : 8;
	env.big_endian = kind & 2;
	/* A block of its own, too. */
	text = malloc(size - 2 - len + 1);
	if (!text)
		return 0;
	memcpy(text, data + 2 + len, size - 2 - len);
	r = program_compile(&env, text, size - 2 - len, &program, &why);
	if (r == 0)
		run(tables[kind], program, data + 2, len);
	else if (r != -ENOMEM && !why)
		abort(); /* the user must get a reason */
	free(text);
	arena_deinit(&arena);
	constants_deinit(&constants);
	return 0;
}
