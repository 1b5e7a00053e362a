/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the options of a trace.dat: a 16-bit id, a 32-bit length, the value. Unknown ids are
 * skipped.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "base/io.h"
#include "base/parse.h"
#include "base/vec.h"
#include "formats/dat/reader.h"

/*
 * Bytes of one option, and number of options. A buffer takes 20 bytes per CPU; a process map may be
 * long.
 */
#define OPTION_MAX (16U << 20)
#define OPTIONS_MAX 65536
#define OPTION_SECTIONS_MAX 4096

void dat_note(struct buf *to, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		text = NULL;
		to->failed = true;
		return;
	}
	/* Bound hostile input: many long sentences. */
	if (to->len < STREAM_NOTE_MAX * 8)
		buf_append(to, text, MIN((size_t)n, (size_t)STREAM_NOTE_MAX / 2));
	if (to->len && to->data[to->len - 1])
		buf_putc(to, '\0');
}

void dat_clock_name(const char *text, size_t len, char ret[static 32])
{
	const char *from = memchr(text, '[', len), *to;

	if (from) {
		from++;
		to = memchr(from, ']', len - (size_t)(from - text));
		len = to ? (size_t)(to - from) : len - (size_t)(from - text);
		text = from;
	}
	len = MIN(strnlen(text, len), (size_t)31);
	memcpy(ret, text, len);
	ret[len] = '\0';
	/* trace-cmd's own clock: x86's counter converted to ns. */
	if (strcmp(ret, "tsc2nsec") == 0)
		strcpy(ret, "x86-tsc");
}

int dat_add_buffer(struct dat *d, const char *name, struct dat_buffer **ret, struct error *err)
{
	struct dat_buffer *b;

	if (d->buffer_count == DAT_BUFFERS_MAX) {
		error_set(err, -EBADMSG, "it has more than %d buffers", DAT_BUFFERS_MAX);
		return -EBADMSG;
	}
	b = vec_add_exact(d->buffers, d->buffer_count);
	if (!b) {
		error_errno(err, -ENOMEM, "can't load its options");
		return -ENOMEM;
	}
	*b = (struct dat_buffer){ .page_size = d->page_size };
	snprintf(b->name, sizeof(b->name), "%s", name);
	*ret = b;
	return 0;
}

static int dat_by_cpu(const void *a, const void *b)
{
	const struct dat_cpu *x = a, *y = b;

	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

static int dat_read_buffer_cpus(struct dat_buffer *b, uint32_t count, struct dat_cursor *c,
				struct error *err)
{
	/* Each CPU takes 20 bytes: more can't fit the option. */
	if (count > CPU_LIST_MAX + 1 || count > (c->end - c->at) / 20)
		return dat_damaged(c, err);
	b->cpus = calloc(count + 1, sizeof(*b->cpus));
	if (!b->cpus)
		return error_errno(err, -ENOMEM, "can't load its options");
	b->cpu_count = count;
	for (uint32_t i = 0; i < count; i++) {
		int r = dat_u32(c, &b->cpus[i].cpu, err);

		if (r == 0)
			r = dat_u64(c, &b->cpus[i].offset, err);
		if (r == 0)
			r = dat_u64(c, &b->cpus[i].size, err);
		if (r < 0)
			return r;
		if (b->cpus[i].cpu > CPU_LIST_MAX)
			return dat_damaged(c, err);
	}
	qsort(b->cpus, count, sizeof(*b->cpus), dat_by_cpu);
	for (uint32_t i = 1; i < count; i++)
		if (b->cpus[i].cpu == b->cpus[i - 1].cpu)
			return dat_damaged(c, err);
	return 0;
}

/* Whether the section with the buffer's events is compressed. */
static int dat_read_buffer_flags(struct dat *d, struct dat_buffer *b, uint64_t offset,
				 struct error *err)
{
	struct dat_cursor c;
	uint16_t id, flags;
	int r;

	dat_cursor_file(&c, d, offset, "events");
	r = dat_u16(&c, &id, err);
	if (r == 0)
		r = dat_u16(&c, &flags, err);
	if (r < 0)
		return r;
	b->packed = flags & DAT_SECTION_PACKED;
	return b->packed && d->packing == DAT_PLAIN ? dat_damaged(&c, err) : 0;
}

static int dat_read_buffer_v7(struct dat *d, bool is_text, struct dat_cursor *c, struct error *err)
{
	struct dat_buffer *b;
	char name[256], clock[64];
	uint64_t offset;
	uint32_t count;
	int r;

	r = dat_u64(c, &offset, err);
	if (r == 0)
		r = dat_string(c, name, sizeof(name), err);
	if (r == 0)
		r = dat_string(c, clock, sizeof(clock), err);
	if (r == 0)
		r = dat_add_buffer(d, name, &b, err);
	if (r)
		return r;
	dat_clock_name(clock, strlen(clock), b->clock);
	b->is_text = is_text;
	if (is_text)
		return 0;
	r = dat_u32(c, &b->page_size, err);
	if (r == 0)
		r = dat_u32(c, &count, err);
	if (r == 0)
		r = dat_read_buffer_cpus(b, count, c, err);
	return r == 0 && count ? dat_read_buffer_flags(d, b, offset, err) : r;
}

/* Its CPU table is at `offset`, after a word for the kind of data. */
static int dat_read_buffer_v6(struct dat *d, struct dat_cursor *c, struct error *err)
{
	struct dat_buffer *b;
	char name[256];
	uint64_t offset;
	int r;

	r = dat_u64(c, &offset, err);
	if (r == 0)
		r = dat_string(c, name, sizeof(name), err);
	if (r == 0)
		r = dat_add_buffer(d, name, &b, err);
	if (r)
		return r;
	/* Later options may give the number of CPUs; until then store the table's offset here. */
	b->cpus = calloc(1, sizeof(*b->cpus));
	if (!b->cpus)
		return error_errno(err, -ENOMEM, "can't load its options");
	b->cpus[0].offset = offset;
	return 0;
}

/* Parses a number in C syntax. */
static int64_t dat_text_number(const char *text)
{
	return strtoll(text, NULL, 0);
}

static void dat_add_time(struct dat *d, int64_t ns)
{
	d->time_offset = (int64_t)((uint64_t)d->time_offset + (uint64_t)ns);
}

static uint64_t dat_stat_value(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	return p ? strtoull(p + strlen(name), NULL, 10) : 0;
}

/* The kernel's counts don't enter the account: they were read at different moments. */
static void dat_read_cpustat(struct dat *d, const char *text)
{
	uint64_t cpu = dat_stat_value(text, "CPU: "), overrun = dat_stat_value(text, "\noverrun: ");
	uint64_t dropped = dat_stat_value(text, "\ndropped events: ");

	if (overrun || dropped)
		dat_note(&d->notes,
			 "the kernel had lost %" PRIu64 " events of CPU %" PRIu64
			 " when trace-cmd asked for its counts",
			 overrun + dropped, cpu);
}

static int dat_read_tsc(struct dat *d, struct dat_cursor *c, struct error *err)
{
	int r = dat_u32(c, &d->time_mult, err);

	if (r == 0)
		r = dat_u32(c, &d->time_shift, err);
	if (r == 0 && d->time_shift > 63)
		return dat_damaged(c, err);
	return r;
}

/* value: has a NUL after its len bytes. */
static int dat_read_option(struct dat *d, unsigned id, const char *value, size_t len,
			   struct error *err)
{
	struct dat_cursor c = {
		.dat = d,
		.memory = (const uint8_t *)value,
		.end = len,
		.what = "options",
	};

	switch (id) {
	case DAT_OPTION_DATE:
		/* Microseconds. */
		dat_add_time(d, (int64_t)((uint64_t)dat_text_number(value) * NSEC_PER_USEC));
		return 0;
	case DAT_OPTION_OFFSET:
		dat_add_time(d, dat_text_number(value));
		return 0;
	case DAT_OPTION_CPUSTAT:
		dat_read_cpustat(d, value);
		return 0;
	case DAT_OPTION_BUFFER:
		return d->version == 6 ? dat_read_buffer_v6(d, &c, err)
				       : dat_read_buffer_v7(d, false, &c, err);
	case DAT_OPTION_BUFFER_TEXT:
		return d->version == 6 ? 0 : dat_read_buffer_v7(d, true, &c, err);
	case DAT_OPTION_TRACECLOCK:
		d->has_clock = true;
		if (memchr(value, '[', len))
			dat_clock_name(value, len, d->clock);
		return 0;
	case DAT_OPTION_UNAME:
		snprintf(d->uname, sizeof(d->uname), "%s", value);
		return 0;
	case DAT_OPTION_VERSION:
		snprintf(d->program, sizeof(d->program), "trace-cmd %s", value);
		return 0;
	case DAT_OPTION_CPUCOUNT:
		return dat_u32(&c, &d->cpus, err);
	case DAT_OPTION_TIME_SHIFT:
		dat_note(&d->notes, "its times are those of a guest: what trace-cmd knows of its "
				    "host's clock is not applied");
		return 0;
	case DAT_OPTION_TSC2NSEC:
		return dat_read_tsc(d, &c, err);
	default:
		if (d->version > 6 && id >= DAT_OPTION_PARTS && id < DAT_OPTION_PARTS + DAT_PARTS)
			return dat_u64(&c, &d->parts[id - DAT_OPTION_PARTS], err);
		return 0;
	}
}

/*
 * Reads all options up to DAT_OPTION_DONE. *ret_done: in version 7 the offset of the next options.
 */
static int dat_read_section_options(struct dat *d, struct dat_cursor *c, unsigned *count,
				    uint64_t *ret_done, struct error *err)
{
	for (;;) {
		_cleanup_buf_ struct buf value = BUF_INIT;
		uint32_t len = 0;
		uint16_t id;
		int r = dat_u16(c, &id, err);

		if (r == 0 && id == DAT_OPTION_DONE && d->version == 6)
			return 0;
		if (r == 0)
			r = dat_u32(c, &len, err);
		if (r < 0)
			return r;
		if (len > OPTION_MAX || ++*count > OPTIONS_MAX)
			return dat_damaged(c, err);
		if (id == DAT_OPTION_DONE)
			return dat_u64(c, ret_done, err);
		r = dat_append(c, len, &value, err);
		if (r < 0)
			return r;
		if (!buf_string(&value))
			return error_errno(err, -ENOMEM, "can't load its options");
		r = dat_read_option(d, id, value.data, len, err);
		if (r < 0)
			return r;
	}
}

int dat_options_v6(struct dat *d, uint64_t *at, struct error *err)
{
	struct dat_cursor c;
	unsigned count = 0;
	uint64_t none;
	int r;

	dat_cursor_file(&c, d, *at, "options");
	r = dat_read_section_options(d, &c, &count, &none, err);
	*at = c.at;
	return r;
}

int dat_options_v7(struct dat *d, struct error *err)
{
	_cleanup_buf_ struct buf memory = BUF_INIT;
	uint64_t offset = d->options, unpacked = 0;
	unsigned count = 0;

	/* Bounded: hostile option sections may form a cycle, each expanding a few bytes to many. */
	for (int i = 0; i < OPTION_SECTIONS_MAX; i++) {
		struct dat_cursor c;
		uint64_t next = 0;
		int r = dat_cursor_section(&c, d, offset, DAT_OPTION_DONE, "options", &memory, err);

		if (r == 0)
			r = dat_read_section_options(d, &c, &count, &next, err);
		if (r < 0 || !next)
			return r;
		unpacked += c.memory ? memory.len : 0;
		if (unpacked > DAT_SECTION_MAX)
			break;
		offset = next;
	}
	return error_set(err, -EBADMSG, "its options have no end: the file is damaged");
}
