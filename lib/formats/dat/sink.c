/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sink for trace-cmd's trace.dat. Events are decoded only to count them; sub-buffers are copied
 * unchanged.
 */
#include <stdlib.h>
#include <unistd.h>
#if HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/io.h"
#include "export/sink.h"
#include "formats/dat/dat.h"

#define NO_NAME UINT32_MAX

static struct dat_file *to_dat(struct sink *s)
{
	return container_of(s, struct dat_file, sink);
}

static int dat_cant_write(int r, struct error *err)
{
	return r < 0 ? error_errno(err, r, "can't write the trace.dat") : 0;
}

static int dat_settle(struct dat_file *f, struct error *err)
{
	return dat_cant_write(output_settle(f->out), err);
}

static uint64_t dat_aligned(const struct dat_file *f, uint64_t offset)
{
	/* trace-cmd maps the data: align to the reader's page size at least. */
	uint64_t unit = MAX(f->page_size, 4096U);

	return (offset + unit - 1) / unit * unit;
}

static int dat_pad_to(struct dat_file *f, uint64_t offset, struct error *err)
{
	static const char zeros[4096];
	int r;

	while (dat_position(f) < offset) {
		buf_append(&f->out->buf, zeros,
			   (size_t)MIN(offset - dat_position(f), (uint64_t)sizeof(zeros)));
		r = dat_settle(f, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static void dat_put_string(struct buf *b, const char *text)
{
	buf_append(b, text, strlen(text) + 1);
}

static void dat_put_initial(struct dat_file *f)
{
	struct buf *b = &f->out->buf;

	buf_append(b, DAT_MAGIC, DAT_MAGIC_SIZE);
	dat_put_string(b, f->packed ? "7" : "6");
	buf_putc(b, f->big_endian);
	buf_putc(b, (char)f->info->header->word_size);
	dat_put_u32(f, b, f->page_size);
}

/* "flyrecord", an entry per CPU, the clock. */
static uint64_t dat_table_size(const struct dat_file *f, const struct buf *clock)
{
	return sizeof("flyrecord") + (uint64_t)f->cpus * 16 + 8 + clock->len;
}

static void dat_put_table(struct dat_file *f, const struct dat_ring *ring, const struct buf *clock)
{
	struct buf *b = &f->out->buf;

	dat_put_string(b, "flyrecord");
	for (uint32_t i = 0; i < f->cpus; i++) {
		dat_put_u64(f, b, ring->cpus[i].offset);
		dat_put_u64(f, b, ring->cpus[i].size);
	}
	dat_put_u64(f, b, clock->len);
	buf_append(b, clock->data, clock->len);
}

/* Computes all offsets, given the first table's. */
static void dat_lay_out(struct dat_file *f, const struct buf *clock, uint64_t offset)
{
	for (size_t i = 0; i < f->ring_count; i++) {
		struct dat_ring *ring = &f->rings[i];

		ring->table = offset;
		offset += dat_table_size(f, clock);
		for (uint32_t k = 0; k < f->cpus; k++) {
			offset = dat_aligned(f, offset);
			ring->cpus[k].offset = offset;
			ring->cpus[k].size = ring->cpus[k].pages * f->page_size;
			offset += ring->cpus[k].size;
		}
	}
}

/* Writes the options. Those of instances come last and hold their tables' offsets. */
static int dat_put_options_v6(struct dat_file *f, const struct buf *clock)
{
	_cleanup_buf_ struct buf options = BUF_INIT;
	uint64_t more = 2;

	dat_put_string(&f->out->buf, "options  ");
	dat_put_options(f, &options);
	for (size_t i = 1; i < f->ring_count; i++)
		more += 6 + 8 + strlen(f->rings[i].name) + 1;
	dat_lay_out(f, clock, dat_position(f) + options.len + more);
	for (size_t i = 1; i < f->ring_count; i++) {
		dat_put_u16(f, &options, DAT_OPTION_BUFFER);
		dat_put_u32(f, &options, (uint32_t)(8 + strlen(f->rings[i].name) + 1));
		dat_put_u64(f, &options, f->rings[i].table);
		dat_put_string(&options, f->rings[i].name);
	}
	dat_put_u16(f, &options, DAT_OPTION_DONE);
	buf_append(&f->out->buf, options.data, options.len);
	return buf_error(&options);
}

static int dat_write_ring_v6(struct dat_file *f, const struct dat_ring *ring,
			     const struct buf *clock, const struct stream_reader *reader,
			     struct error *err)
{
	int r = 0;

	dat_put_table(f, ring, clock);
	for (uint32_t i = 0; r == 0 && i < f->cpus; i++) {
		r = dat_pad_to(f, ring->cpus[i].offset, err);
		if (r == 0 && ring->cpus[i].size)
			r = dat_write_cpu(f, &ring->cpus[i], reader, err);
	}
	return r;
}

static int dat_write_v6(struct dat_file *f, const struct stream_reader *reader, struct error *err)
{
	_cleanup_buf_ struct buf clock = BUF_INIT;
	int r = 0;

	dat_put_clock(f, &clock);
	for (unsigned part = 0; r == 0 && part < DAT_PARTS; part++) {
		r = dat_cant_write(dat_put_part(f, part, &f->out->buf), err);
		if (r == 0)
			r = dat_settle(f, err);
	}
	if (r < 0)
		return r;
	dat_put_u32(f, &f->out->buf, f->cpus);
	r = dat_cant_write(dat_put_options_v6(f, &clock) ?: buf_error(&clock), err);
	for (size_t i = 0; r == 0 && i < f->ring_count; i++)
		r = dat_write_ring_v6(f, &f->rings[i], &clock, reader, err);
	return r;
}

#if HAVE_ZSTD
/* Fills in a value that was unknown earlier; in the file if it already left the buffer. */
static int dat_fill_in(struct dat_file *f, uint64_t offset, uint64_t v, struct error *err)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	ssize_t n;

	dat_put_u64(f, &b, v);
	if (buf_error(&b))
		return dat_cant_write(-ENOMEM, err);
	if (offset >= f->out->bytes) {
		memcpy(f->out->buf.data + (offset - f->out->bytes), b.data, b.len);
		return 0;
	}
	/* Part of it may have been written. */
	if (output_flush(f->out, false) < 0)
		return dat_cant_write(f->out->failed, err);
	n = pwrite(f->out->file.fd, b.data, b.len, (off_t)offset);
	return n == (ssize_t)b.len ? 0 : dat_cant_write(n < 0 ? -errno : -EIO, err);
}

/* Returns the offset of its size field, to fill in later. */
static uint64_t dat_begin_section(struct dat_file *f, unsigned id, bool packed)
{
	struct buf *b = &f->out->buf;

	dat_put_u16(f, b, (uint16_t)id);
	dat_put_u16(f, b, packed ? DAT_SECTION_PACKED : 0);
	dat_put_u32(f, b, NO_NAME);
	dat_put_u64(f, b, 0);
	return dat_position(f) - 8;
}

static int dat_end_section(struct dat_file *f, uint64_t begun, struct error *err)
{
	return dat_fill_in(f, begun, dat_position(f) - begun - 8, err);
}

static void dat_put_place(struct dat_file *f, struct buf *options, unsigned id, uint64_t offset)
{
	dat_put_u16(f, options, (uint16_t)id);
	dat_put_u32(f, options, 8);
	dat_put_u64(f, options, offset);
}

static int dat_write_part_v7(struct dat_file *f, unsigned part, struct buf *options,
			     struct error *err)
{
	_cleanup_buf_ struct buf plain = BUF_INIT, packed = BUF_INIT;
	uint64_t begun;
	int r;

	dat_put_place(f, options, DAT_OPTION_PARTS + part, dat_position(f));
	r = dat_cant_write(dat_put_part(f, part, &plain), err);
	if (r == 0)
		r = dat_pack(f, plain.data, plain.len, &packed, err);
	if (r < 0)
		return r;
	begun = dat_begin_section(f, DAT_OPTION_PARTS + part, true);
	dat_put_u32(f, &f->out->buf, (uint32_t)packed.len);
	dat_put_u32(f, &f->out->buf, (uint32_t)plain.len);
	buf_append(&f->out->buf, packed.data, packed.len);
	r = dat_end_section(f, begun, err);
	return r == 0 ? dat_settle(f, err) : r;
}

static int dat_write_ring_v7(struct dat_file *f, struct dat_ring *ring, struct buf *options,
			     const struct stream_reader *reader, struct error *err)
{
	_cleanup_buf_ struct buf value = BUF_INIT;
	uint64_t at = dat_position(f), begun = dat_begin_section(f, DAT_OPTION_BUFFER, true);
	uint32_t count = 0;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < f->cpus; i++) {
		struct dat_cpu_data *cpu = &ring->cpus[i];

		if (!cpu->pages)
			continue;
		count++;
		r = dat_pad_to(f, dat_aligned(f, dat_position(f)), err);
		cpu->offset = dat_position(f);
		if (r == 0)
			r = dat_write_cpu(f, cpu, reader, err);
		cpu->size = dat_position(f) - cpu->offset;
	}
	if (r == 0)
		r = dat_end_section(f, begun, err);
	dat_put_u64(f, &value, at);
	dat_put_string(&value, ring->name);
	dat_put_string(&value,
		       f->info->header->time_mult ? "tsc2nsec" : f->info->header->trace_clock);
	dat_put_u32(f, &value, f->page_size);
	dat_put_u32(f, &value, count);
	for (uint32_t i = 0; i < f->cpus; i++) {
		if (!ring->cpus[i].pages)
			continue;
		dat_put_u32(f, &value, i);
		dat_put_u64(f, &value, ring->cpus[i].offset);
		dat_put_u64(f, &value, ring->cpus[i].size);
	}
	dat_put_option(f, options, DAT_OPTION_BUFFER, value.data, value.len);
	return r < 0 ? r : dat_cant_write(buf_error(&value), err);
}

static int dat_write_v7(struct dat_file *f, const struct stream_reader *reader, struct error *err)
{
	_cleanup_buf_ struct buf options = BUF_INIT, count = BUF_INIT;
	uint64_t first, begun;
	int r = 0;

	dat_put_string(&f->out->buf, "zstd");
	dat_put_string(&f->out->buf, ZSTD_versionString());
	first = dat_position(f);
	dat_put_u64(f, &f->out->buf, 0);
	for (unsigned part = 0; r == 0 && part < DAT_PARTS; part++)
		r = dat_write_part_v7(f, part, &options, err);
	dat_put_options(f, &options);
	dat_put_u32(f, &count, f->cpus);
	dat_put_option(f, &options, DAT_OPTION_CPUCOUNT, count.data, count.len);
	for (size_t i = 0; r == 0 && i < f->ring_count; i++)
		r = dat_write_ring_v7(f, &f->rings[i], &options, reader, err);
	if (r == 0)
		r = dat_fill_in(f, first, dat_position(f), err);
	if (r < 0)
		return r;
	dat_put_place(f, &options, DAT_OPTION_DONE, 0);
	begun = dat_begin_section(f, DAT_OPTION_DONE, false);
	buf_append(&f->out->buf, options.data, options.len);
	return dat_cant_write(buf_error(&options) ?: buf_error(&count), err)
		       ?: dat_end_section(f, begun, err);
}
#else
static int dat_write_v7(struct dat_file *f, const struct stream_reader *reader, struct error *err)
{
	return dat_write_v6(f, reader, err);
}
#endif

static int dat_sink_open(struct sink **ret, const struct sink_env *env, struct error *err)
{
	const struct trace_info *info = env->info;
	const struct export_options *o = env->options;
	struct output *out = env->out;
	struct dat_file *f;

	f = calloc(1, sizeof(*f));
	if (!f)
		return error_errno(err, -ENOMEM, "can't begin the trace.dat");
	f->info = info;
	f->out = out;
	f->packed = o->perfetto.compression == PERFETTO_ZSTD;
	f->big_endian = info->header->big_endian;
	f->page_size = info->layout.subbuf_size;
	*ret = &f->sink;
	return 0;
}

static int dat_close(struct sink *s _unused_, const struct export_result *result _unused_,
		     struct error *err _unused_)
{
	return 0;
}

static int dat_copy(struct sink *s, const struct stream_index *index, bool last, struct error *err)
{
	struct dat_file *f = to_dat(s);
	int r;

	if (!last)
		return 0;
	r = dat_load_texts(f, index->reader, err);
	if (r == 0)
		r = dat_find_data(f, index, err);
	if (r < 0)
		return r;
	dat_put_initial(f);
	return f->packed ? dat_write_v7(f, index->reader, err)
			 : dat_write_v6(f, index->reader, err);
}

static void dat_free(struct sink *s)
{
	struct dat_file *f = to_dat(s);

	for (size_t i = 0; i < f->ring_count; i++)
		free(f->rings[i].cpus);
	free(f->rings);
	buf_deinit(&f->symbols);
	buf_deinit(&f->printk);
	buf_deinit(&f->block);
	buf_deinit(&f->packed_block);
#if HAVE_ZSTD
	ZSTD_freeCCtx(f->zstd);
#endif
	free(f);
}

/* Clocks without nanoseconds, and those whose nanoseconds libtraceevent 1.7 does not know. */
static const char *const dat_raw_clocks[] = { "boot", "counter", "x86-tsc", "ppc-tb", NULL };

const struct sink_ops sink_dat_ops = {
	.format = {
		.name = "dat",
		.extension = ".dat",
		.summary = "trace-cmd's file, for trace-cmd report and KernelShark",
		.raw_clocks = dat_raw_clocks,
		.raw_clock_reader = "trace-cmd report",
		.raw_records = true,
		.at_end = true,
		.packings = 1U << PERFETTO_ZSTD,
		.packed_goes_back = true,
	},
	.copy = dat_copy,
	.open = dat_sink_open,
	.event = sink_skip_event,
	.loss = sink_skip_loss,
	.close = dat_close,
	.free = dat_free,
};
