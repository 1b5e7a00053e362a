/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make_kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { ID_KINDS = 200, ID_ARRAYS, ID_RELATIVE, ID_STACK, ID_BPUTS, ID_FUNCTION, ID_CALL };

/* Addresses of the kernel and of a module. */
static uint64_t kernel_address(const struct maker *m, uint32_t offset)
{
	return (m->word_size == 8 ? UINT64_C(0xffffffff80000000) : UINT64_C(0xc0000000)) + offset;
}

static void put_format(struct maker *m, const char *system, const char *name, int id,
		       struct buf *fields, const char *print)
{
	maker_format(m, system, name, id, buf_string(fields), print);
	buf_clear(fields);
}

static void put_tracer_formats(struct maker *m, struct buf *fields)
{
	unsigned w = m->word_size;

	buf_printf(fields,
		   "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n"
		   "\tfield:unsigned long caller[8];\toffset:16;\tsize:%u;\tsigned:0;\n",
		   8 * w);
	put_format(m, "ftrace", "kernel_stack", ID_STACK, fields,
		   "\"\\t=> %ps\\n\", (void *)REC->caller[0]");
	buf_printf(fields,
		   "\tfield:unsigned long ip;\toffset:8;\tsize:%u;\tsigned:0;\n"
		   "\tfield:const char * str;\toffset:%u;\tsize:%u;\tsigned:0;\n",
		   w, 8 + w, w);
	put_format(m, "ftrace", "bputs", ID_BPUTS, fields,
		   "\"%ps: %s\", (void *)REC->ip, REC->str");
	buf_printf(fields,
		   "\tfield:unsigned long ip;\toffset:8;\tsize:%u;\tsigned:0;\n"
		   "\tfield:unsigned long parent_ip;\toffset:%u;\tsize:%u;\tsigned:0;\n",
		   w, 8 + w, w);
	put_format(m, "ftrace", "function", ID_FUNCTION, fields,
		   "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip");
}

void maker_kinds(struct maker *m)
{
	_cleanup_buf_ struct buf fields = BUF_INIT, text = BUF_INIT;
	unsigned w = m->word_size;

	buf_printf(&fields,
		   "\tfield:unsigned long site;\toffset:8;\tsize:%u;\tsigned:0;\n"
		   "\tfield:void * ptr;\toffset:16;\tsize:%u;\tsigned:0;\n"
		   "\tfield:const char * what;\toffset:24;\tsize:%u;\tsigned:0;\n"
		   "\tfield:s16 small;\toffset:32;\tsize:2;\tsigned:1;\n"
		   "\tfield:dev_t dev;\toffset:36;\tsize:4;\tsigned:0;\n"
		   "\tfield:char fixed[8];\toffset:40;\tsize:8;\tsigned:0;\n",
		   w, w, w);
	put_format(m, "test", "kinds", ID_KINDS, &fields,
		   "\"site=%pS ptr=%p what=%s small=%d dev=%d,%d fixed=%s\", (void *)REC->site, "
		   "REC->ptr, REC->what, REC->small, ((unsigned int) ((REC->dev) >> 20)), "
		   "((unsigned int) ((REC->dev) & ((1U << 20) - 1))), REC->fixed");
	buf_puts(&fields, "\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n"
			  "\tfield:__data_loc u32[] numbers;\toffset:12;\tsize:4;\tsigned:0;\n"
			  "\tfield:__data_loc cpumask_t mask;\toffset:16;\tsize:4;\tsigned:0;\n"
			  "\tfield:u8 address[4];\toffset:20;\tsize:4;\tsigned:0;\n");
	put_format(m, "test", "arrays", ID_ARRAYS, &fields,
		   "\"name=%s numbers=%s mask=%s address=%s\", __get_str(name), "
		   "__print_array(__get_dynamic_array(numbers), "
		   "__get_dynamic_array_len(numbers) / 4, 4), __get_cpumask(mask), "
		   "__print_hex(REC->address, 4)");
	buf_puts(&fields, "\tfield:__rel_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n");
	put_format(m, "test", "relative", ID_RELATIVE, &fields, "\"name=%s\", __get_rel_str(name)");
	put_tracer_formats(m, &fields);
	buf_printf(&fields,
		   "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
		   "\tfield:struct stat * path;\toffset:16;\tsize:%u;\tsigned:0;\n",
		   w);
	put_format(m, "syscalls", "sys_enter_chdir", ID_CALL, &fields,
		   "\"path: 0x%08lx\", ((unsigned long)(REC->path))");
	buf_printf(&text,
		   "%llx T outer\n%llx T inner\n%llx T last\n%llx t hidden\t[module]\n"
		   "%llx t hidden_end\t[module]\n",
		   (unsigned long long)kernel_address(m, 0x1000),
		   (unsigned long long)kernel_address(m, 0x1100),
		   (unsigned long long)kernel_address(m, 0x1200),
		   (unsigned long long)kernel_address(m, 0x10000000),
		   (unsigned long long)kernel_address(m, 0x10001000));
	maker_symbols(m, buf_string(&text));
	buf_clear(&text);
	buf_printf(&text, "0x%llx : \"a string of the kernel's,\\ttwo \\\"words\\\"\"\n",
		   (unsigned long long)kernel_address(m, 0x2000));
	assert_int_equal(stream_write(&m->writer, CHUNK_PRINTK, text.data, text.len), 0);
}

/* Pads up to an offset of the record, whose first eight bytes are not in data. */
static void pad_to(struct buf *data, size_t offset)
{
	while (data->len < offset - 8)
		buf_putc(data, '\0');
}

static void put_scalars(struct maker *m, struct buf *data, uint64_t site)
{
	maker_word(m, data, site);
	pad_to(data, 16);
	maker_word(m, data, kernel_address(m, 0x5550));
	pad_to(data, 24);
	maker_word(m, data, kernel_address(m, 0x2000));
	pad_to(data, 32);
	maker_u16(m, data, (uint16_t)-3);
	pad_to(data, 36);
	maker_u32(m, data, 254 << 20 | 7);
	buf_append(data, "short\0\0", 8);
}

static void put_arrays(struct maker *m, struct buf *data)
{
	maker_u32(m, data, 24 | 5 << 16);
	maker_u32(m, data, 32 | 8 << 16);
	maker_u32(m, data, 40 | 8 << 16);
	buf_append(data, "\x7f\0\0\x01", 4);
	buf_append(data, "name\0\0\0", 8);
	maker_u32(m, data, 1);
	maker_u32(m, data, UINT32_MAX);
	for (unsigned i = 0; i < 8 / m->word_size; i++)
		maker_word(m, data, i ? 0 : 0x1d);
}

static void emit(struct maker *m, uint64_t ts, uint16_t id, struct buf *data)
{
	maker_event(m, ts, id, 9, data->data, data->len);
	buf_clear(data);
}

void event_kinds(struct maker *m, uint64_t ts)
{
	const uint64_t outer = kernel_address(m, 0x1010), inner = kernel_address(m, 0x1100),
		       hidden = kernel_address(m, 0x10000008);
	_cleanup_buf_ struct buf data = BUF_INIT;

	put_scalars(m, &data, outer);
	emit(m, ts, ID_KINDS, &data);
	put_scalars(m, &data, hidden);
	emit(m, ts + 1, ID_KINDS, &data);
	put_arrays(m, &data);
	emit(m, ts + 2, ID_ARRAYS, &data);
	maker_u32(m, &data, 0 | 4 << 16);
	buf_append(&data, "rel", 4);
	emit(m, ts + 3, ID_RELATIVE, &data);
	maker_u32(m, &data, 3);
	pad_to(&data, 16);
	maker_word(m, &data, inner);
	maker_word(m, &data, outer);
	maker_word(m, &data, hidden);
	maker_word(m, &data, UINT64_MAX);
	emit(m, ts + 4, ID_STACK, &data);
	maker_word(m, &data, outer);
	maker_word(m, &data, kernel_address(m, 0x2000));
	emit(m, ts + 5, ID_BPUTS, &data);
	maker_word(m, &data, inner);
	maker_word(m, &data, outer);
	emit(m, ts + 6, ID_FUNCTION, &data);
	maker_u32(m, &data, 80);
	pad_to(&data, 16);
	maker_word(m, &data, m->word_size == 8 ? UINT64_C(0x7ffe12345678) : 0x12345678);
	emit(m, ts + 7, ID_CALL, &data);
}
