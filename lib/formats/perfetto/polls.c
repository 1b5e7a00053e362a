/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/perfetto/polls.h"

#include <errno.h>

#include "base/io.h"
#include "formats/perfetto/packet.h"
#include "formats/perfetto/poll_keys.h"
#include "formats/perfetto/track_event.h"

#define CPUS_MAX 1024 /* as in sink.c */
/* Files of a reading that are searched for a zone of the same type. */
#define ZONES_MAX 256

/* Upstream's field numbers of SysStats and ProcessStats, and of their submessages. */
enum {
	SYS_MEMINFO = 1,
	SYS_VMSTAT = 2,
	SYS_CPU_STAT = 3,
	SYS_FORKS = 4,
	SYS_IRQS = 5,
	SYS_SOFTIRQS = 7,
	SYS_CPUFREQ = 11,
	SYS_DISK_STAT = 13,
	SYS_PSI = 14,
	SYS_THERMAL_ZONE = 15,
	KEY_NUMBER = 1,
	KEY_VALUE = 2,
	ZONE_NAME = 1,
	ZONE_TEMP = 2,
	ZONE_TYPE = 3,
	PROCESS_STATS_PROCESS = 1,
};

struct poll_field {
	struct text key;
	uint32_t field;
};

#define FIELD(name, number)                                                                        \
	{                                                                                          \
		{ (name), sizeof(name) - 1 }, (number)                                             \
	}

/* The text's field in a table that ends with field 0; NULL: none. */
static const struct poll_field *poll_field_find(const struct poll_field *table, struct text key)
{
	for (; table->field; table++)
		if (text_equal(table->key, key))
			return table;
	return NULL;
}

void pf_polls_deinit(struct pf_polls *p)
{
	buf_deinit(&p->stats);
	buf_deinit(&p->text);
}

static void poll_put_key(struct buf *b, uint32_t field, uint32_t key, uint64_t value)
{
	size_t content = pf_open(b, field);

	pf_uint(b, KEY_NUMBER, key);
	pf_uint(b, KEY_VALUE, value);
	pf_close(b, content);
}

/* A submessage with the values of one CPU, disk or process. */
struct poll_group {
	size_t content; /* 0: not open */
	struct text item;
	uint32_t number;
};

static void poll_group_end(struct poll_group *g, struct buf *b)
{
	if (g->content)
		pf_close(b, g->content);
	g->content = 0;
}

/* True: a new submessage began, so its first field is due. */
static bool poll_group_begin(struct poll_group *g, const struct poll_value *v, uint32_t field,
			     struct buf *b)
{
	if (g->content && g->number == v->number && text_equal(g->item, v->item))
		return false;
	poll_group_end(g, b);
	*g = (struct poll_group){ .content = pf_open(b, field),
				  .item = v->item,
				  .number = v->number };
	return true;
}

static bool poll_put_stat(struct poll_group *g, const struct poll_value *v, struct buf *b)
{
	static const struct poll_field cpu[] = {
		FIELD("user", 2),    FIELD("nice", 3),	 FIELD("system", 4),
		FIELD("idle", 5),    FIELD("iowait", 6), FIELD("irq", 7),
		FIELD("softirq", 8), FIELD("steal", 9),	 { .field = 0 },
	};
	static const struct poll_field plain[] = {
		FIELD("processes", SYS_FORKS),
		FIELD("intr", SYS_IRQS),
		FIELD("softirq", SYS_SOFTIRQS),
		{ .field = 0 },
	};
	const struct poll_field *f = poll_field_find(v->item.len ? cpu : plain, v->key);

	if (!f)
		return false;
	if (!v->item.len)
		poll_group_end(g, b);
	else if (poll_group_begin(g, v, SYS_CPU_STAT, b))
		pf_uint(b, 1, v->number);
	pf_uint(b, f->field, v->bits);
	return true;
}

static bool poll_put_disk(struct poll_group *g, const struct poll_value *v, struct buf *b)
{
	static const struct poll_field disk[] = {
		FIELD("read_sectors", 2), FIELD("read_ms", 3),	       FIELD("write_sectors", 4),
		FIELD("write_ms", 5),	  FIELD("discard_sectors", 6), FIELD("discard_ms", 7),
		FIELD("flushes", 8),	  FIELD("flush_ms", 9),	       { .field = 0 },
	};
	const struct poll_field *f = poll_field_find(disk, v->key);

	if (!f)
		return false;
	if (poll_group_begin(g, v, SYS_DISK_STAT, b))
		pf_text(b, 1, v->item);
	pf_uint(b, f->field, v->bits);
	return true;
}

static bool poll_put_process(struct poll_group *g, const struct poll_value *v, struct buf *b)
{
	static const struct poll_field sizes[] = {
		FIELD("VmSize", 2),  FIELD("VmRSS", 3),	   FIELD("RssAnon", 4),
		FIELD("RssFile", 5), FIELD("RssShmem", 6), FIELD("VmSwap", 7),
		FIELD("VmLck", 8),   FIELD("VmHWM", 9),	   { .field = 0 },
	};
	const struct poll_field *f = poll_field_find(sizes, v->key);

	if (!f)
		return false;
	if (poll_group_begin(g, v, PROCESS_STATS_PROCESS, b))
		pf_uint(b, 1, v->number);
	pf_uint(b, f->field, v->bits);
	return true;
}

static bool poll_put_pressure(const struct poll_value *v, struct buf *b)
{
	static const struct poll_field resources[] = {
		FIELD("cpu", 1),
		FIELD("io", 3),
		FIELD("memory", 5),
		{ .field = 0 },
	};
	const struct poll_field *f = poll_field_find(resources, v->item);
	bool full = text_equal(v->key, TEXT("full"));
	uint64_t ns;

	if (!f || (!full && !text_equal(v->key, TEXT("some"))) ||
	    __builtin_mul_overflow(v->bits, NSEC_PER_USEC, &ns))
		return false;
	poll_put_key(b, SYS_PSI, f->field + full, ns);
	return true;
}

/* Readers number the entries: a CPU without a frequency has 0. */
static bool poll_put_frequency(uint32_t *next_cpu, const struct poll_value *v, struct buf *b)
{
	if (v->number < *next_cpu || v->number >= CPUS_MAX || v->bits > UINT32_MAX)
		return false;
	while (*next_cpu < v->number) {
		pf_uint(b, SYS_CPUFREQ, 0);
		++*next_cpu;
	}
	pf_uint(b, SYS_CPUFREQ, v->bits);
	++*next_cpu;
	return true;
}

/* Readers tell zones apart by their types, which several may share. */
static bool poll_is_second_of_type(const struct poll *poll, const struct poll_value *v)
{
	const Traced__Capture__Poll *m = poll->message;

	for (size_t i = 0; i < MIN(m->n_files, (size_t)ZONES_MAX); i++) {
		const Traced__Capture__PolledFile *f = m->files[i];

		if (f->number < v->number && f->label.len == v->key.len &&
		    memcmp(f->label.data, v->key.data, v->key.len) == 0)
			return true;
	}
	return false;
}

static bool poll_put_temperature(struct pf_polls *p, const struct poll *poll,
				 const struct poll_value *v)
{
	_cleanup_buf_ struct buf type = BUF_INIT;
	struct buf *b = &p->stats;
	char name[32];
	size_t content;

	if (v->negative || !v->key.len)
		return false;
	buf_append(&type, v->key.data, v->key.len);
	if (poll_is_second_of_type(poll, v))
		buf_printf(&type, " %u", v->number);
	snprintf(name, sizeof(name), "thermal_zone%u", v->number);
	content = pf_open(b, SYS_THERMAL_ZONE);
	pf_text(b, ZONE_NAME, (struct text){ name, (uint32_t)strlen(name) });
	pf_uint(b, ZONE_TEMP, v->bits / 1000);
	pf_text(b, ZONE_TYPE, (struct text){ type.data, (uint32_t)type.len });
	pf_close(b, content);
	b->failed |= type.failed;
	return true;
}

/* False: the messages have no field for it. */
static bool poll_put_typed(struct pf_polls *p, const struct poll *poll, struct poll_group *g,
			   uint32_t *next_cpu, const struct poll_value *v)
{
	struct buf *b = &p->stats;
	uint32_t key;

	switch ((enum poll_source)poll->message->source) {
	case POLL_MEMINFO:
		key = v->unit ? pf_meminfo_key(v->key) : 0;
		if (key)
			poll_put_key(b, SYS_MEMINFO, key, v->bits);
		return key;
	case POLL_VMSTAT:
		key = pf_vmstat_key(v->key);
		if (key)
			poll_put_key(b, SYS_VMSTAT, key, v->bits);
		return key;
	case POLL_STAT:
		return poll_put_stat(g, v, b);
	case POLL_CPUFREQ:
		return poll_put_frequency(next_cpu, v, b);
	case POLL_PSI:
		return poll_put_pressure(v, b);
	case POLL_THERMAL:
		return poll_put_temperature(p, poll, v);
	case POLL_DISKSTATS:
		return poll_put_disk(g, v, b);
	case POLL_PROCESS_MEMORY:
		return poll_put_process(g, v, b);
	default:
		return false;
	}
}

static void poll_put_packet(const struct pf_polls *p, const struct pf_marks *marks,
			    const struct poll *poll, struct buf *out)
{
	bool process = (unsigned)poll->message->source == POLL_PROCESS_MEMORY;
	size_t packet = pf_open(out, TRACE_PACKET);

	pf_uint(out, PACKET_TIMESTAMP, poll->ts);
	if (marks->clock)
		pf_uint(out, PACKET_CLOCK, marks->clock);
	pf_uint(out, PACKET_SEQUENCE, PF_SEQUENCE);
	pf_message(out, process ? PACKET_PROCESS_STATS : PACKET_SYS_STATS, &p->stats);
	pf_close(out, packet);
}

int pf_polls_put(struct pf_polls *p, struct pf_marks *marks, const struct poll *poll,
		 struct buf *out)
{
	struct poll_group group = { 0 };
	struct poll_value v;
	struct poll_iter it;
	uint32_t next_cpu = 0;
	struct mark mark;
	int r = 0;

	buf_clear(&p->stats);
	poll_iter_init(&it, poll);
	while (r == 0 && poll_next(&it, &v)) {
		if (poll_put_typed(p, poll, &group, &next_cpu, &v))
			continue;
		r = poll_mark(poll, &v, &p->text, &mark);
		if (r == 0)
			r = pf_marks_put_polled(marks, &mark, out);
		/* Too many tracks: as for marks. */
		if (r < 0 && r != -ENOMEM) {
			marks->left_out++;
			r = 0;
		}
	}
	poll_group_end(&group, &p->stats);
	if (r == 0 && p->stats.len)
		poll_put_packet(p, marks, poll, out);
	return r ?: buf_error(&p->stats) ?: buf_error(out);
}
