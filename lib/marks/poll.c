/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/poll.h"

#include "base/io.h"

#define COLUMN(name)                                                                               \
	{                                                                                          \
		(name), sizeof(name) - 1                                                           \
	}
/* Columns of a line "cpuN ..." in /proc/stat, and of a disk in /proc/diskstats. */
static const struct text cpu_columns[] = {
	COLUMN("user"), COLUMN("nice"),	   COLUMN("system"), COLUMN("idle"),  COLUMN("iowait"),
	COLUMN("irq"),	COLUMN("softirq"), COLUMN("steal"),  COLUMN("guest"), COLUMN("guest_nice"),
};
static const struct text disk_columns[] = {
	COLUMN("reads"),	   COLUMN("reads_merged"),    COLUMN("read_sectors"),
	COLUMN("read_ms"),	   COLUMN("writes"),	      COLUMN("writes_merged"),
	COLUMN("write_sectors"),   COLUMN("write_ms"),	      COLUMN("in_flight"),
	COLUMN("io_ms"),	   COLUMN("weighted_io_ms"),  COLUMN("discards"),
	COLUMN("discards_merged"), COLUMN("discard_sectors"), COLUMN("discard_ms"),
	COLUMN("flushes"),	   COLUMN("flush_ms"),
};

void poll_iter_init(struct poll_iter *it, const struct poll *poll)
{
	*it = (struct poll_iter){ .poll = poll };
}

static struct text poll_bytes(ProtobufCBinaryData bytes)
{
	return (struct text){ (const char *)bytes.data ?: "",
			      (uint32_t)MIN(bytes.len, UINT32_MAX) };
}

/* Cuts text at the first of the separators, which is dropped. */
static struct text poll_cut_at(struct text *text, const char *separators)
{
	struct text head = { text->data, 0 };

	while (head.len < text->len && !strchr(separators, text->data[head.len] ?: 'x'))
		head.len++;
	text->data += MIN(head.len + 1, text->len);
	text->len -= MIN(head.len + 1, text->len);
	return head;
}

static struct text poll_cut_word(struct text *text)
{
	while (text->len && (*text->data == ' ' || *text->data == '\t')) {
		text->data++;
		text->len--;
	}
	return poll_cut_at(text, " \t");
}

static bool poll_parse_number(struct text word, uint64_t *ret)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < word.len; i++) {
		unsigned digit = (unsigned char)word.data[i] - (unsigned)'0';

		if (digit > 9 || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, digit, &n))
			return false;
	}
	*ret = n;
	return word.len > 0;
}

static bool poll_begins_with(struct text text, const char *with)
{
	return text.len >= strlen(with) && !memcmp(text.data, with, strlen(with));
}

/* "MemFree:  123 kB" or "HugePages_Free: 0", in meminfo and in a process's status. */
static bool poll_read_size(struct text line, struct poll_value *ret)
{
	ret->key = poll_cut_at(&line, ":");
	if (!poll_parse_number(poll_cut_word(&line), &ret->bits))
		return false;
	ret->unit = text_equal(poll_cut_word(&line), TEXT("kB")) ? "kB" : NULL;
	return true;
}

/* The sizes of a process that people ask for; its file has more. */
static bool poll_read_process(struct text line, struct poll_value *ret)
{
	static const struct text sizes[] = {
		COLUMN("VmSize"),  COLUMN("VmLck"),   COLUMN("VmHWM"),	  COLUMN("VmRSS"),
		COLUMN("RssAnon"), COLUMN("RssFile"), COLUMN("RssShmem"), COLUMN("VmSwap"),
	};

	if (!poll_read_size(line, ret))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (text_equal(ret->key, sizes[i]))
			return true;
	return false;
}

/* "NAME NUMBER ..." */
static bool poll_read_named(struct text line, struct poll_value *ret)
{
	ret->key = poll_cut_word(&line);
	return poll_parse_number(poll_cut_word(&line), &ret->bits);
}

/* Lines of /proc/stat; the counts of single interrupts and the sums of all CPUs are left out. */
static bool poll_read_stat(struct poll_iter *it, struct text line, struct poll_value *ret)
{
	static const char *const plain[] = { "intr",	      "ctxt",	       "processes",
					     "procs_running", "procs_blocked", "softirq" };
	uint64_t cpu;

	if (poll_begins_with(line, "cpu")) {
		it->line = line;
		it->item = poll_cut_word(&it->line);
		if (!poll_parse_number((struct text){ it->item.data + 3, it->item.len - 3 },
				       &cpu) ||
		    cpu > UINT32_MAX)
			return false;
		it->number = (uint32_t)cpu;
		it->column = cpu_columns;
		it->column_end = cpu_columns + ARRAY_SIZE(cpu_columns);
		it->scale = it->poll->hz ? NSEC_PER_SEC / it->poll->hz : 0;
		it->unit = "ns";
		return false;
	}
	if (!poll_read_named(line, ret))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (text_equal(ret->key, (struct text){ plain[i], (uint32_t)strlen(plain[i]) }))
			return true;
	return false;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234" */
static bool poll_read_pressure(const struct poll_iter *it, struct text line, struct poll_value *ret)
{
	ret->item = it->label;
	ret->key = poll_cut_word(&line);
	ret->unit = "us";
	while (line.len) {
		struct text word = poll_cut_word(&line);

		if (poll_begins_with(word, "total="))
			return poll_parse_number((struct text){ word.data + 6, word.len - 6 },
						 &ret->bits);
	}
	return false;
}

/*
 * The file has one value, as has that of a frequency: hostile lines after it would take far more
 * memory than they have bytes.
 */
static bool poll_read_temperature(struct poll_iter *it, struct text line, struct poll_value *ret)
{
	struct text word = poll_cut_word(&line);

	it->rest = (struct text){ 0 };
	ret->item = (struct text){ it->name, (uint32_t)snprintf(it->name, sizeof(it->name),
								"zone%u", it->number) };
	ret->key = it->label;
	ret->unit = "mC";
	ret->negative = poll_begins_with(word, "-");
	if (ret->negative)
		word = (struct text){ word.data + 1, word.len - 1 };
	if (!poll_parse_number(word, &ret->bits) || ret->bits > INT32_MAX)
		return false;
	if (ret->negative)
		ret->bits = -ret->bits;
	return true;
}

static bool poll_read_frequency(struct poll_iter *it, struct text line, struct poll_value *ret)
{
	it->rest = (struct text){ 0 };
	ret->item = (struct text){ it->name, (uint32_t)snprintf(it->name, sizeof(it->name), "cpu%u",
								it->number) };
	ret->unit = "kHz";
	return poll_parse_number(poll_cut_word(&line), &ret->bits);
}

static void poll_begin_disk(struct poll_iter *it, struct text line)
{
	uint64_t major, minor;

	if (!poll_parse_number(poll_cut_word(&line), &major) ||
	    !poll_parse_number(poll_cut_word(&line), &minor))
		return;
	it->item = poll_cut_word(&line);
	it->line = line;
	it->column = disk_columns;
	it->column_end = disk_columns + ARRAY_SIZE(disk_columns);
	it->scale = 1;
	it->unit = NULL;
}

/* True: ret is the line's only value. A line with several values begins its columns. */
static bool poll_read_line(struct poll_iter *it, struct text line, struct poll_value *ret)
{
	*ret = (struct poll_value){ .number = it->number };
	switch ((enum poll_source)it->poll->message->source) {
	case POLL_MEMINFO:
		return poll_read_size(line, ret);
	case POLL_PROCESS_MEMORY:
		return poll_read_process(line, ret);
	case POLL_VMSTAT:
		return poll_read_named(line, ret);
	case POLL_STAT:
		return poll_read_stat(it, line, ret);
	case POLL_PSI:
		return poll_read_pressure(it, line, ret);
	case POLL_THERMAL:
		return poll_read_temperature(it, line, ret);
	case POLL_CPUFREQ:
		return poll_read_frequency(it, line, ret);
	case POLL_DISKSTATS:
		poll_begin_disk(it, line);
		return false;
	default:
		return false;
	}
}

/* Older kernels have fewer columns, and a later one may have more. */
static bool poll_read_column(struct poll_iter *it, struct poll_value *ret)
{
	uint64_t n;

	if (!it->column)
		return false;
	if (it->column == it->column_end || !poll_parse_number(poll_cut_word(&it->line), &n) ||
	    __builtin_mul_overflow(n, it->scale, &n)) {
		it->column = NULL;
		return false;
	}
	*ret = (struct poll_value){ .item = it->item,
				    .key = *it->column++,
				    .unit = it->unit,
				    .number = it->number,
				    .bits = n };
	return true;
}

static bool poll_next_file(struct poll_iter *it)
{
	const Traced__Capture__PolledFile *f;

	if (it->file == it->poll->message->n_files)
		return false;
	f = it->poll->message->files[it->file++];
	it->number = f->number;
	it->label = poll_bytes(f->label);
	it->rest = poll_bytes(f->text);
	return true;
}

bool poll_next(struct poll_iter *it, struct poll_value *ret)
{
	for (;;) {
		bool have = poll_read_column(it, ret);

		if (!have && !it->column && !it->rest.len && !poll_next_file(it))
			return false;
		if (!have && !it->column)
			have = poll_read_line(it, poll_cut_at(&it->rest, "\n"), ret);
		if (have && ret->item.len <= POLL_NAME_MAX && ret->key.len <= POLL_NAME_MAX)
			return true;
	}
}

static void poll_add_word(struct buf *to, struct text word)
{
	if (!word.len)
		return;
	buf_putc(to, ' ');
	buf_append(to, word.data, word.len);
}

int poll_mark(const struct poll *poll, const struct poll_value *v, struct buf *scratch,
	      struct mark *ret)
{
	const char *unit = v->unit ?: "value";
	const struct text series = { unit, (uint32_t)strlen(unit) };
	size_t name_len;

	buf_clear(scratch);
	buf_puts(scratch, poll_source_name(poll->message->source) ?: "");
	poll_add_word(scratch, v->item);
	poll_add_word(scratch, v->key);
	name_len = scratch->len;
	value_put_u64(scratch, &series, v->negative ? VALUE_INT : VALUE_UINT, v->bits);
	if (buf_error(scratch) < 0)
		return -ENOMEM;
	*ret = (struct mark){
		.phase = PHASE_COUNTER,
		.ts = poll->ts,
		.part[PART_NAME] = { scratch->data, (uint32_t)name_len },
		.part[PART_CAT] = TEXT("poll"),
		.part[PART_ARGS] = { scratch->data + name_len,
				     (uint32_t)(scratch->len - name_len) },
	};
	if ((unsigned)poll->message->source == POLL_PROCESS_MEMORY)
		ret->pid = ret->tid = (int32_t)MIN(v->number, (uint32_t)INT32_MAX);
	return 0;
}
