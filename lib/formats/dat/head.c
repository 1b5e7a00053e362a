/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>

#include "formats/dat/dat.h"
#include "stream/excerpt.h"
#include "trace/bounds.h"

/* events/header_event of all kernels since 3.x; readers ignore it. */
static const char header_event[] = "# compressed entry header\n"
				   "\ttype_len    :    5 bits\n"
				   "\ttime_delta  :   27 bits\n"
				   "\tarray       :   32 bits\n"
				   "\n"
				   "\tpadding     : type == 29\n"
				   "\ttime_extend : type == 30\n"
				   "\ttime_stamp : type == 31\n"
				   "\tdata max type_len  == 28\n";

void dat_put_u16(const struct dat_file *f, struct buf *b, uint16_t v)
{
	v = f->big_endian ? htobe16(v) : htole16(v);
	buf_append(b, &v, sizeof(v));
}

void dat_put_u32(const struct dat_file *f, struct buf *b, uint32_t v)
{
	v = f->big_endian ? htobe32(v) : htole32(v);
	buf_append(b, &v, sizeof(v));
}

void dat_put_u64(const struct dat_file *f, struct buf *b, uint64_t v)
{
	v = f->big_endian ? htobe64(v) : htole64(v);
	buf_append(b, &v, sizeof(v));
}

static void dat_head_put_string(struct buf *b, const char *text)
{
	buf_append(b, text, strlen(text) + 1);
}

/* Text of events/header_page for this layout. */
static void dat_head_put_page_format(const struct page_layout *l, struct buf *b)
{
	buf_printf(b, "\tfield: u64 timestamp;\toffset:%u;\tsize:8;\tsigned:0;\n",
		   l->timestamp_offset);
	buf_printf(b, "\tfield: local_t commit;\toffset:%u;\tsize:%u;\tsigned:1;\n",
		   l->commit_offset, l->commit_size);
	buf_printf(b, "\tfield: int overwrite;\toffset:%u;\tsize:1;\tsigned:1;\n",
		   l->commit_offset);
	buf_printf(b, "\tfield: char data;\toffset:%u;\tsize:%u;\tsigned:0;\n", l->data_offset,
		   l->subbuf_size - l->data_offset);
}

static void dat_head_put_header_info(const struct dat_file *f, struct buf *b)
{
	_cleanup_buf_ struct buf page = BUF_INIT;

	dat_head_put_page_format(&f->info->layout, &page);
	dat_head_put_string(b, "header_page");
	dat_put_u64(f, b, page.len);
	buf_append(b, page.data, page.len);
	dat_head_put_string(b, "header_event");
	dat_put_u64(f, b, strlen(header_event));
	buf_puts(b, header_event);
	b->failed |= page.failed;
}

static void dat_head_put_format(const struct dat_file *f, const struct event *ev, struct buf *b)
{
	size_t len;
	const char *text = event_format_text(ev, &len);

	dat_put_u64(f, b, len);
	buf_append(b, text, len);
}

static bool dat_head_is_ftrace(const struct event *ev)
{
	return strcmp(ev->system, "ftrace") == 0;
}

/* ftrace's own events; no system name precedes them. */
static void dat_head_put_ftrace(const struct dat_file *f, struct buf *b)
{
	const struct event *const *all;
	uint32_t n = 0;
	size_t count;

	all = event_table_all(f->info->events, &count);
	for (size_t i = 0; i < count; i++)
		n += dat_head_is_ftrace(all[i]);
	dat_put_u32(f, b, n);
	for (size_t i = 0; i < count; i++)
		if (dat_head_is_ftrace(all[i]))
			dat_head_put_format(f, all[i], b);
}

static int dat_head_by_system(const void *a, const void *b)
{
	const struct event *const *x = a, *const *y = b;
	int r = strcmp((*x)->system, (*y)->system);

	return r ?: (*x)->id - (*y)->id;
}

static int dat_head_put_systems(const struct dat_file *f, struct buf *b)
{
	_cleanup_free_ const struct event **sorted = NULL;
	const struct event *const *all;
	size_t count, n = 0, end;
	uint32_t systems = 0;

	all = event_table_all(f->info->events, &count);
	sorted = calloc(count + 1, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (!dat_head_is_ftrace(all[i]))
			sorted[n++] = all[i];
	qsort(sorted, n, sizeof(*sorted), dat_head_by_system);
	for (size_t i = 0; i < n; i++)
		systems += i == 0 || strcmp(sorted[i]->system, sorted[i - 1]->system) != 0;
	dat_put_u32(f, b, systems);
	for (size_t i = 0; i < n; i = end) {
		for (end = i; end < n && strcmp(sorted[end]->system, sorted[i]->system) == 0; end++)
			;
		dat_head_put_string(b, sorted[i]->system);
		dat_put_u32(f, b, (uint32_t)(end - i));
		for (size_t k = i; k < end; k++)
			dat_head_put_format(f, sorted[k], b);
	}
	return 0;
}

static int dat_head_put_text(const struct dat_file *f, const struct buf *text, struct buf *b)
{
	if (text->len > UINT32_MAX)
		return -EFBIG;
	dat_put_u32(f, b, (uint32_t)text->len);
	buf_append(b, text->data, text->len);
	return 0;
}

/* Like saved_cmdlines: the last name of each thread. */
static int dat_head_put_cmdlines(const struct dat_file *f, struct buf *b)
{
	_cleanup_buf_ struct buf lines = BUF_INIT;
	struct task *const *all;
	size_t count;

	all = task_table_all(f->info->tasks, &count);
	if (!all && count)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct task *t = all[i];
		size_t at = lines.len;

		if (!t->comm[0] || t->tid <= 0 || (i + 1 < count && all[i + 1]->tid == t->tid))
			continue;
		buf_printf(&lines, "%d %s\n", t->tid, t->comm);
		/* Replace newlines in names. */
		for (char *p;
		     lines.len > at && (p = memchr(lines.data + at, '\n', lines.len - 1 - at));)
			*p = '?';
	}
	dat_put_u64(f, b, lines.len);
	buf_append(b, lines.data, lines.len);
	return buf_error(&lines);
}

int dat_put_part(struct dat_file *f, enum dat_part part, struct buf *b)
{
	int r = 0;

	switch (part) {
	case DAT_HEADER_INFO:
		dat_head_put_header_info(f, b);
		break;
	case DAT_FTRACE_FORMATS:
		dat_head_put_ftrace(f, b);
		break;
	case DAT_FORMATS:
		r = dat_head_put_systems(f, b);
		break;
	case DAT_KALLSYMS:
		r = dat_head_put_text(f, &f->symbols, b);
		break;
	case DAT_PRINTK:
		r = dat_head_put_text(f, &f->printk, b);
		break;
	default:
		r = dat_head_put_cmdlines(f, b);
		break;
	}
	return r ?: buf_error(b);
}

int dat_load_texts(struct dat_file *f, const struct stream_reader *reader, struct error *err)
{
	_cleanup_buf_ struct buf payload = BUF_INIT, excerpt = BUF_INIT;
	struct stream_reader own = *reader;
	struct bounds bounds = { 0 };
	struct chunk chunk;
	int r;

	own.offset = STREAM_MAGIC_SIZE;
	/* Errors of reading were reported when the stream was loaded. */
	while (own.offset < reader->offset && stream_reader_next(&own, &chunk, NULL) > 0) {
		struct buf *to = chunk.type == CHUNK_KALLSYMS		? &f->symbols
				 : chunk.type == CHUNK_KALLSYMS_EXCERPT ? &excerpt
				 : chunk.type == CHUNK_PRINTK		? &f->printk
									: NULL;

		if (!to)
			continue;
		r = stream_reader_load_max(&own, &chunk, bounds_payload_max(chunk.type), &payload,
					   NULL);
		if (r == -ENOMEM)
			return error_errno(err, r, "can't write the trace.dat");
		if (r == 0 && bounds_take(&bounds, chunk.type, payload.len) == 0)
			buf_append(to, payload.data, payload.len);
		/* Unreadable symbols are reported on their first use. */
		else if (chunk.type == CHUNK_KALLSYMS)
			event_table_symbols(f->info->events);
	}
	if (!f->symbols.len && is_excerpt(excerpt.data, excerpt.len))
		buf_append(&f->symbols, excerpt.data, excerpt.len);
	r = buf_error(&excerpt) ?: buf_error(&f->symbols) ?: buf_error(&f->printk);
	return r < 0 ? error_errno(err, r, "can't write the trace.dat") : 0;
}

void dat_put_option(const struct dat_file *f, struct buf *b, unsigned id, const void *value,
		    size_t len)
{
	dat_put_u16(f, b, (uint16_t)id);
	dat_put_u32(f, b, (uint32_t)len);
	buf_append(b, value, len);
}

/* Text values end with a NUL. */
static void dat_head_put_text_option(const struct dat_file *f, struct buf *b, unsigned id,
				     const struct buf *text)
{
	b->failed |= text->failed;
	dat_put_option(f, b, id, text->data, text->len);
}

void dat_put_clock(const struct dat_file *f, struct buf *b)
{
	const Traced__Capture__Header *h = f->info->header;

	/* trace-cmd has its own name for x86's counter converted to ns. */
	buf_printf(b, "[%s]", h->time_mult ? "tsc2nsec" : h->trace_clock);
}

/* Text of per_cpu/cpuN/stats. */
static void dat_head_put_stats(const struct dat_file *f, const Traced__Capture__CpuStats *s,
			       struct buf *b)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	buf_printf(&text, "CPU: %u\nentries: %" PRIu64 "\noverrun: %" PRIu64 "\n", s->cpu,
		   s->entries, s->overrun);
	buf_printf(&text, "commit overrun: %" PRIu64 "\nbytes: %" PRIu64 "\n", s->commit_overrun,
		   s->bytes);
	buf_printf(&text, "oldest event ts: %5" PRIu64 ".%06" PRIu64 "\n",
		   s->oldest_ns / 1000000000, s->oldest_ns / 1000 % 1000000);
	buf_printf(&text, "now ts: %5" PRIu64 ".%06" PRIu64 "\n", s->now_ns / 1000000000,
		   s->now_ns / 1000 % 1000000);
	buf_printf(&text, "dropped events: %" PRIu64 "\nread events: %" PRIu64 "\n", s->dropped,
		   s->read);
	buf_putc(&text, '\0');
	dat_head_put_text_option(f, b, DAT_OPTION_CPUSTAT, &text);
}

static void dat_head_put_times(const struct dat_file *f, struct buf *b)
{
	const Traced__Capture__Header *h = f->info->header;
	_cleanup_buf_ struct buf value = BUF_INIT;

	if (h->time_offset) {
		buf_printf(&value, "%" PRId64, h->time_offset);
		buf_putc(&value, '\0');
		dat_head_put_text_option(f, b, DAT_OPTION_OFFSET, &value);
	}
	if (!h->time_mult)
		return;
	buf_clear(&value);
	dat_put_u32(f, &value, h->time_mult);
	dat_put_u32(f, &value, h->time_shift);
	dat_put_u64(f, &value, 0);
	dat_head_put_text_option(f, b, DAT_OPTION_TSC2NSEC, &value);
}

void dat_put_options(const struct dat_file *f, struct buf *b)
{
	const struct trace_info *info = f->info;
	const Traced__Capture__Header *h = info->header;
	_cleanup_buf_ struct buf value = BUF_INIT;
	const Traced__Capture__Stats *last =
		info->stats_count ? info->stats[info->stats_count - 1] : NULL;

	dat_head_put_times(f, b);
	for (size_t i = 0; last && i < last->n_cpus; i++)
		dat_head_put_stats(f, last->cpus[i], b);
	dat_put_clock(f, &value);
	buf_putc(&value, '\0');
	dat_head_put_text_option(f, b, DAT_OPTION_TRACECLOCK, &value);
	buf_clear(&value);
	buf_printf(&value, "%s %s %s %s", h->sysname, h->nodename, h->release, h->machine);
	buf_putc(&value, '\0');
	dat_head_put_text_option(f, b, DAT_OPTION_UNAME, &value);
	dat_put_option(f, b, DAT_OPTION_VERSION, h->program, strlen(h->program) + 1);
	if (h->uuid.len >= 8)
		dat_put_option(f, b, DAT_OPTION_TRACEID, h->uuid.data, 8);
}
