/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Locates all parts of a trace.dat and chooses the buffers that form a trace. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/parse.h"
#include "formats/dat/reader.h"

static const char *const part_names[DAT_PARTS] = {
	"description of sub-buffers",
	"ftrace's formats",
	"event formats",
	"kernel symbols",
	"printk formats",
	"task names",
};

void dat_deinit(struct dat *d)
{
	for (size_t i = 0; i < d->buffer_count; i++)
		free(d->buffers[i].cpus);
	free(d->buffers);
	buf_deinit(&d->notes);
	buf_deinit(&d->gaps);
	buf_deinit(&d->header_page);
	dat_packing_deinit(d);
	*d = (struct dat){ .fd = -EBADF };
}

static int dat_read_packing(struct dat *d, struct dat_cursor *c, struct error *err)
{
	char name[32], version[64];
	int r = dat_string(c, name, sizeof(name), err);

	if (r == 0)
		r = dat_string(c, version, sizeof(version), err);
	if (r == 0)
		r = dat_packing_find(d, name, err);
	return r == 0 ? dat_u64(c, &d->options, err) : r;
}

/* *ret_at: offset after the initial format. */
static int dat_read_initial(struct dat *d, uint64_t *ret_at, struct error *err)
{
	struct dat_cursor c;
	uint8_t big, word;
	char version[8];
	int r;

	dat_cursor_file(&c, d, DAT_MAGIC_SIZE, "first bytes");
	r = dat_string(&c, version, sizeof(version), err);
	if (r == 0)
		r = dat_bytes(&c, &big, 1, err);
	if (r < 0)
		return r;
	d->version = (unsigned)atoi(version);
	if (d->version != 6 && d->version != 7) {
		error_set(err, -EOPNOTSUPP, "it is a trace.dat of version %u", d->version);
		return error_hint(err,
				  "versions 6 and 7 are supported: trace-cmd convert writes them");
	}
	d->big_endian = big;
	/* This is trace-cmd's word size; the kernel's comes later. */
	r = dat_bytes(&c, &word, 1, err);
	if (r == 0)
		r = dat_u32(&c, &d->page_size, err);
	if (r == 0 && d->version == 7)
		r = dat_read_packing(d, &c, err);
	*ret_at = c.at;
	return r;
}

/* Reads a version 6 table: offset and size for each CPU, then the clock. */
static int dat_read_table(struct dat *d, struct dat_buffer *b, uint64_t at, uint32_t cpus,
			  struct error *err)
{
	_cleanup_buf_ struct buf clock = BUF_INIT;
	struct dat_cursor c;
	uint64_t len;
	int r = 0;

	dat_cursor_file(&c, d, at, "table of CPUs");
	if (cpus > CPU_LIST_MAX + 1)
		return dat_damaged(&c, err);
	free(b->cpus);
	b->cpu_count = 0;
	b->cpus = calloc((size_t)cpus + 1, sizeof(*b->cpus));
	if (!b->cpus)
		return error_errno(err, -ENOMEM, "can't load its %s", c.what);
	b->cpu_count = cpus;
	for (uint32_t i = 0; r == 0 && i < cpus; i++) {
		b->cpus[i].cpu = i;
		r = dat_u64(&c, &b->cpus[i].offset, err);
		if (r == 0)
			r = dat_u64(&c, &b->cpus[i].size, err);
	}
	if (r < 0)
		return r;
	b->clock[0] = '\0';
	/* Some files lack the clock. */
	if (d->has_clock && dat_u64(&c, &len, NULL) == 0 && len && len < 1024 &&
	    dat_append(&c, len, &clock, NULL) == 0)
		dat_clock_name(clock.data, clock.len, b->clock);
	return 0;
}

/* Reads "flyrecord", "latency" or "options"; advances *at. */
static int dat_read_kind(struct dat *d, uint64_t *at, char ret[static 11], struct error *err)
{
	struct dat_cursor c;
	int r;

	dat_cursor_file(&c, d, *at, "kind");
	r = dat_bytes(&c, ret, 10, err);
	ret[10] = '\0';
	*at = c.at;
	return r;
}

static int dat_read_tables(struct dat *d, const char *kind, uint64_t at, struct error *err)
{
	struct dat_buffer *top;
	int r = 0;

	/* The instances' buffers, which the options named. */
	for (size_t i = 0; r == 0 && i < d->buffer_count; i++) {
		uint64_t table = d->buffers[i].cpus[0].offset;
		char what[11];

		r = dat_read_kind(d, &table, what, err);
		if (r == 0)
			r = dat_read_table(d, &d->buffers[i], table, d->cpus, err);
	}
	if (r == 0)
		r = dat_add_buffer(d, "", &top, err);
	if (r)
		return r;
	top->is_text = strncmp(kind, "latency", strlen("latency")) == 0;
	if (top->is_text)
		return 0;
	if (strncmp(kind, "flyrecord", strlen("flyrecord")) != 0)
		return error_set(err, -EBADMSG, "it has no events: the file is cut or damaged");
	return dat_read_table(d, top, at, d->cpus, err);
}

/* Reads what follows the parts in version 6. */
static int dat_read_rest(struct dat *d, uint64_t at, struct error *err)
{
	struct dat_cursor c;
	char kind[11];
	int r;

	dat_cursor_file(&c, d, at, "number of CPUs");
	r = dat_u32(&c, &d->cpus, err);
	at = c.at;
	if (r == 0)
		r = dat_read_kind(d, &at, kind, err);
	if (r == 0 && strncmp(kind, "options", strlen("options")) == 0) {
		r = dat_options_v6(d, &at, err);
		if (r == 0)
			r = dat_read_kind(d, &at, kind, err);
	}
	return r == 0 ? dat_read_tables(d, kind, at, err) : r;
}

static int dat_skip_formats(struct dat_cursor *c, struct error *err)
{
	uint32_t count;
	int r = dat_u32(c, &count, err);

	for (uint32_t i = 0; r == 0 && i < count; i++) {
		uint64_t size;

		r = dat_u64(c, &size, err);
		if (r == 0)
			r = dat_skip(c, size, err);
	}
	return r;
}

static int dat_skip_systems(struct dat_cursor *c, struct error *err)
{
	uint32_t count;
	int r = dat_u32(c, &count, err);

	for (uint32_t i = 0; r == 0 && i < count; i++) {
		char system[8];

		r = dat_string(c, system, sizeof(system), err);
		if (r == 0)
			r = dat_skip_formats(c, err);
	}
	return r;
}

/* Reads two texts, each after its name and length. */
static int dat_read_header_info(struct dat *d, struct dat_cursor *c, struct error *err)
{
	static const char *const names[] = { "header_page", "header_event" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char name[16];
		uint64_t size;
		int r = dat_string(c, name, sizeof(name), err);

		if (r == 0)
			r = dat_u64(c, &size, err);
		if (r < 0)
			return r;
		if (strcmp(name, names[i]) != 0 || size > (64U << 10))
			return dat_damaged(c, err);
		r = i == 0 ? dat_append(c, size, &d->header_page, err) : dat_skip(c, size, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int dat_walk_v6(struct dat *d, uint64_t at, struct error *err)
{
	int r = 0;

	for (int part = 0; part < DAT_PARTS; part++) {
		struct dat_cursor c;
		uint64_t len = 0;
		uint32_t len32 = 0;

		dat_cursor_file(&c, d, at, part_names[part]);
		d->parts[part] = at;
		switch (part) {
		case DAT_HEADER_INFO:
			r = dat_read_header_info(d, &c, err);
			break;
		case DAT_FTRACE_FORMATS:
			r = dat_skip_formats(&c, err);
			break;
		case DAT_FORMATS:
			r = dat_skip_systems(&c, err);
			break;
		case DAT_CMDLINES:
			r = dat_u64(&c, &len, err);
			break;
		default:
			r = dat_u32(&c, &len32, err);
			len = len32;
			break;
		}
		if (r == 0)
			r = dat_skip(&c, len, err);
		if (r < 0)
			return r;
		at = c.at;
	}
	return dat_read_rest(d, at, err);
}

static int dat_open_v7(struct dat *d, struct error *err)
{
	_cleanup_buf_ struct buf memory = BUF_INIT;
	struct dat_cursor c;
	int r = dat_options_v7(d, err);

	if (r < 0)
		return r;
	r = dat_cursor_section(&c, d, d->parts[DAT_HEADER_INFO], DAT_OPTION_PARTS,
			       part_names[DAT_HEADER_INFO], &memory, err);
	return r == 0 ? dat_read_header_info(d, &c, err) : r;
}

int dat_open(struct dat *ret, int fd, struct error *err)
{
	struct stat st;
	uint64_t at = 0;
	int r;

	*ret = (struct dat){ .fd = fd };
	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "can't read it");
	ret->size = (uint64_t)st.st_size;
	r = dat_read_initial(ret, &at, err);
	if (r == 0)
		r = ret->version == 6 ? dat_walk_v6(ret, at, err) : dat_open_v7(ret, err);
	return r;
}

static void dat_list_buffers(const struct dat *d, struct buf *out)
{
	for (size_t i = 0; i < d->buffer_count; i++)
		if (d->buffers[i].cpu_count || d->buffers[i].is_text)
			buf_printf(out, "%s'%s'", out->len ? ", " : "", d->buffers[i].name);
}

static bool dat_has_events(const struct dat_buffer *b)
{
	for (size_t i = 0; i < b->cpu_count; i++)
		if (b->cpus[i].size)
			return true;
	return false;
}

/* Chooses the named buffer, or all that have events. */
static int dat_choose_buffers(struct dat *d, const char *instance, struct error *err)
{
	_cleanup_buf_ struct buf names = BUF_INIT;
	size_t chosen = 0, texts = 0;

	for (size_t i = 0; i < d->buffer_count; i++) {
		struct dat_buffer *b = &d->buffers[i];
		bool wanted = instance ? strcmp(b->name, instance) == 0 : dat_has_events(b);

		texts += b->is_text && (!instance || wanted);
		b->chosen = wanted && !b->is_text;
		chosen += b->chosen;
	}
	if (!chosen && texts) {
		error_set(err, -EBADMSG, "it holds the text of a latency tracer, and no events");
		return error_hint(err, "trace-cmd report shows it");
	}
	if (chosen || !instance)
		return 0;
	dat_list_buffers(d, &names);
	error_set(err, -ENOENT, "it has no buffer '%s'", instance);
	return error_hint(err, "it has %s", buf_string(&names) ?: "others");
}

static int dat_check_together(const struct dat *d, const struct dat_buffer *a,
			      const struct dat_buffer *b, struct error *err)
{
	_cleanup_buf_ struct buf names = BUF_INIT;

	if (!d->clock[0] && a->clock[0] && b->clock[0] && strcmp(a->clock, b->clock) != 0)
		error_set(err, -EINVAL,
			  "its buffers '%s' and '%s' have different clocks: %s and %s", a->name,
			  b->name, a->clock, b->clock);
	else if (a->page_size != b->page_size)
		error_set(err, -EINVAL,
			  "its buffers '%s' and '%s' have sub-buffers of different sizes", a->name,
			  b->name);
	else
		return 0;
	dat_list_buffers(d, &names);
	return error_hint(err, "choose one with --instance: it has %s",
			  buf_string(&names) ?: "more");
}

/* CPU ranges must not overlap, even in a truncated file. */
static int dat_check_sizes(const struct dat *d, struct error *err)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < d->buffer_count; i++) {
		const struct dat_buffer *b = &d->buffers[i];

		for (size_t k = 0; b->chosen && k < b->cpu_count; k++)
			if (b->cpus[k].offset < d->size)
				sum += MIN(b->cpus[k].size, d->size - b->cpus[k].offset);
	}
	return sum <= d->size ? 0
			      : error_set(err, -EBADMSG,
					  "its CPUs' events lie in the same place: the "
					  "file is damaged");
}

int dat_choose(struct dat *d, const char *instance, struct error *err)
{
	struct dat_buffer *first = NULL;
	int r = dat_choose_buffers(d, instance, err);

	for (size_t i = 0; r == 0 && i < d->buffer_count; i++) {
		if (!d->buffers[i].chosen)
			continue;
		if (first)
			r = dat_check_together(d, first, &d->buffers[i], err);
		else
			first = &d->buffers[i];
	}
	if (r == 0)
		r = dat_check_sizes(d, err);
	if (r < 0)
		return r;
	if (!d->clock[0])
		strcpy(d->clock, first && first->clock[0] ? first->clock : "local");
	if (first)
		d->page_size = first->page_size;
	if (subbuf_layout_parse(&d->layout, d->header_page.data, d->header_page.len, d->page_size) <
		    0 ||
	    !d->page_size)
		return error_set(err, -EBADMSG, "its description of sub-buffers is invalid");
	d->word_size = d->layout.commit_size;
	return 0;
}
