/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make_dat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char number_format[] =
	"name: number\nID: 100\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:u32 value;\toffset:8;\tsize:4;\tsigned:0;\n\n"
	"print fmt: \"value=%u\", REC->value\n";

static const char *const names[] = { "", "one", "two", "three" };

static void put_text(const struct maker *m, struct buf *out, const char *text, unsigned size_bytes)
{
	if (size_bytes == 8)
		maker_u64(m, out, strlen(text));
	else
		maker_u32(m, out, (uint32_t)strlen(text));
	buf_puts(out, text);
}

static void put_string(struct buf *out, const char *text)
{
	buf_append(out, text, strlen(text) + 1);
}

static void put_header_info(const struct maker *m, struct buf *out)
{
	_cleanup_buf_ struct buf page = BUF_INIT;

	maker_header_page(m, &page);
	assert_non_null(buf_string(&page));
	put_string(out, "header_page");
	put_text(m, out, page.data, 8);
	put_string(out, "header_event");
	put_text(m, out, "# compressed entry header\n", 8);
}

static void put_ftrace(const struct maker *m, struct buf *out)
{
	maker_u32(m, out, 0);
}

static void put_events(const struct maker *m, struct buf *out)
{
	maker_u32(m, out, 1);
	put_string(out, "test");
	maker_u32(m, out, 1);
	put_text(m, out, number_format, 8);
}

static void put_kallsyms(const struct maker *m, struct buf *out)
{
	put_text(m, out, "ffffffff81000000 T start_kernel\n", 4);
}

static void put_printk(const struct maker *m, struct buf *out)
{
	put_text(m, out, "", 4);
}

static void put_cmdlines(const struct maker *m, struct buf *out)
{
	put_text(m, out, "7 seven\n", 8);
}

static void (*const parts[])(const struct maker *m, struct buf *out) = {
	put_header_info, put_ftrace, put_events, put_kallsyms, put_printk, put_cmdlines,
};

static void put_option(const struct maker *m, struct buf *out, unsigned id, const void *value,
		       size_t len)
{
	maker_u16(m, out, (uint16_t)id);
	maker_u32(m, out, (uint32_t)len);
	buf_append(out, value, len);
}

static void put_options(const struct dat_maker *d, struct buf *out)
{
	for (size_t i = 0; i < d->option_count; i++)
		put_option(d->m, out, d->options[i].id, d->options[i].value, d->options[i].len);
}

static void align(const struct dat_maker *d, struct buf *out)
{
	while (out->len % d->m->subbuf_size)
		buf_putc(out, '\0');
}

static void patch_u64(const struct maker *m, struct buf *out, size_t at, uint64_t v)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	maker_u64(m, &b, v);
	memcpy(out->data + at, b.data, 8);
}

/* "flyrecord", where CPU 0's sub-buffers are, and the clock; then the sub-buffers. */
static void put_table(const struct dat_maker *d, struct buf *out)
{
	size_t table;

	put_string(out, "flyrecord");
	table = out->len;
	maker_u64(d->m, out, 0);
	maker_u64(d->m, out, d->m->subbufs.len);
	put_text(d->m, out, "local [mono]", 8);
	align(d, out);
	patch_u64(d->m, out, table, out->len);
	buf_append(out, d->m->subbufs.data, d->m->subbufs.len);
}

static void put_v6(const struct dat_maker *d, struct buf *out)
{
	const struct maker *m = d->m;
	size_t places[ARRAY_SIZE(names)];

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		parts[i](m, out);
	maker_u32(m, out, 1);
	buf_append(out, "options  ", 10);
	put_options(d, out);
	for (unsigned i = 1; i <= d->instances; i++) {
		maker_u16(m, out, 3);
		maker_u32(m, out, (uint32_t)(8 + strlen(names[i]) + 1));
		places[i] = out->len;
		maker_u64(m, out, 0);
		put_string(out, names[i]);
	}
	put_option(m, out, 4, "", 0);
	maker_u16(m, out, 0);
	put_table(d, out);
	for (unsigned i = 1; i <= d->instances; i++) {
		patch_u64(m, out, places[i], out->len);
		put_table(d, out);
	}
}

/* Begins a section; returns where its size belongs. */
static size_t begin_section(const struct maker *m, struct buf *out, unsigned id)
{
	maker_u16(m, out, (uint16_t)id);
	maker_u16(m, out, 0);
	maker_u32(m, out, 0);
	maker_u64(m, out, 0);
	return out->len - 8;
}

static void end_section(const struct maker *m, struct buf *out, size_t begun)
{
	patch_u64(m, out, begun, out->len - begun - 8);
}

static void put_offset_option(const struct maker *m, struct buf *out, unsigned id, uint64_t at)
{
	maker_u16(m, out, (uint16_t)id);
	maker_u32(m, out, 8);
	maker_u64(m, out, at);
}

static void put_buffer(const struct dat_maker *d, struct buf *out, struct buf *options,
		       const char *name)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	const struct maker *m = d->m;
	size_t at = out->len, begun = begin_section(m, out, 3);

	align(d, out);
	maker_u64(m, &value, at);
	put_string(&value, name);
	put_string(&value, "mono");
	maker_u32(m, &value, m->subbuf_size);
	maker_u32(m, &value, 1);
	maker_u32(m, &value, 0);
	maker_u64(m, &value, out->len);
	maker_u64(m, &value, m->subbufs.len);
	buf_append(out, m->subbufs.data, m->subbufs.len);
	end_section(m, out, begun);
	put_option(m, options, 3, value.data, value.len);
}

static void put_v7(const struct dat_maker *d, struct buf *out)
{
	_cleanup_buf_ struct buf options = BUF_INIT, more = BUF_INIT;
	const struct maker *m = d->m;
	size_t first, begun;

	put_string(out, "none");
	put_string(out, "");
	first = out->len;
	maker_u64(m, out, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
		put_offset_option(m, &options, 16 + i, out->len);
		begun = begin_section(m, out, 16 + i);
		parts[i](m, out);
		end_section(m, out, begun);
	}
	put_options(d, &options);
	for (unsigned i = 0; i <= d->instances; i++)
		put_buffer(d, out, &more, names[i]);
	/* Two sections of options, as trace-cmd writes them. */
	patch_u64(m, out, first, out->len);
	begun = begin_section(m, out, 0);
	buf_append(out, options.data, options.len);
	put_offset_option(m, out, 0, out->len + 14);
	end_section(m, out, begun);
	begun = begin_section(m, out, 0);
	buf_append(out, more.data, more.len);
	put_offset_option(m, out, 0, 0);
	end_section(m, out, begun);
}

void make_dat(const struct dat_maker *d, struct buf *out)
{
	assert_true(d->instances < ARRAY_SIZE(names));
	buf_append(out, "\x17\x08\x44tracing", 10);
	put_string(out, d->version == 6 ? "6" : "7");
	buf_putc(out, d->m->big_endian);
	buf_putc(out, (char)d->m->word_size);
	maker_u32(d->m, out, d->m->subbuf_size);
	if (d->version == 6)
		put_v6(d, out);
	else
		put_v7(d, out);
	assert_int_equal(buf_error(out), 0);
}
