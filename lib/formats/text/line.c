/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/text/line.h"

#include <string.h>

#include "base/io.h"
#include "base/plain.h"
#include "base/thread.h"
#include "trace/host_numbers.h"

/* enum trace_flag_type */
#define FLAG_IRQS_OFF 0x01
#define FLAG_IRQS_NOSUPPORT 0x02 /* until Linux 6.12 */
#define FLAG_NEED_RESCHED_LAZY 0x02
#define FLAG_NEED_RESCHED 0x04
#define FLAG_HARDIRQ 0x08
#define FLAG_SOFTIRQ 0x10
#define FLAG_PREEMPT_RESCHED 0x20
#define FLAG_NMI 0x40
#define FLAG_BH_OFF 0x80
/* NEED_RESCHED_LAZY with the patches for PREEMPT_RT, until Linux 6.6 */
#define FLAG_PATCHED_LAZY 0x20	   /* takes the bit of PREEMPT_RESCHED */
#define FLAG_PATCHED_LAZY_OLD 0x80 /* until 5.16, which has no BH_OFF */

#define CACHE_SIZE 1024 /* a power of two */
#define TEXT_MAX 144	/* label, comm, pid, tgid and their columns */
#define TEXT_USUAL 32	/* size that fits most tasks: a copy of constant size is fast */

struct cached {
	uint64_t from_ts, until_ts; /* lifetime of the task in text */
	int32_t pid;
	uint32_t len; /* 0: empty */
	bool plain;   /* text has no special characters */
	char text[TEXT_MAX];
};

/* The recorded kernel's form of lines. */
struct line_form {
	bool context; /* option context-info: lines have this prefix */
	bool flags;   /* option irq-info */
	bool migrate; /* since 5.15: a column for migrate_disable, in the upper preempt nibble */
	bool bh;      /* since 5.17: D and b show disabled bottom halves */
	bool lazy_columns;  /* of the patches for PREEMPT_RT, until 6.6 */
	bool had_tgid;	    /* the recorded header has the TGID column */
	uint8_t lazy_bit;   /* NEED_RESCHED_LAZY; 0: there is none */
	unsigned pid_width; /* 7; before Linux 5.10: 5 */
	bool counter;	    /* the clock counts something other than time */
};

static const char pipes[] = "|||||||";

struct line {
	const struct trace_info *info;
	struct line_form form;
	bool tgid;
	enum line_style style;
	const struct host_numbers *host; /* LINE_PORTABLE: as in trace_info; or NULL */
	uint64_t second_ts;		 /* the first time that rounds to second_text's second */
	uint32_t second_len;
	char second_text[24];
	char digits[200];   /* "00" to "99" */
	char flags[256][3]; /* by the flags byte */
	char preempt[256][2];
	struct cached cache[CACHE_SIZE];
};

bool release_at_least(const char *release, unsigned major, unsigned minor)
{
	unsigned a = 0, b = 0;

	if (sscanf(release, "%u.%u", &a, &b) != 2)
		return true;
	return a > major || (a == major && b >= minor);
}

static uint8_t line_lazy_bit(const struct line_form *f, const struct trace_info *info)
{
	const char *release = info->header->release;
	bool rt = strstr(info->header->kernel_version, "PREEMPT_RT");

	if (f->lazy_columns && !f->bh)
		return FLAG_PATCHED_LAZY_OLD;
	/* Red Hat's kernels have the columns without PREEMPT_RT, too. */
	if (f->lazy_columns)
		return rt ? FLAG_PATCHED_LAZY : 0;
	/* Without PREEMPT_RT, no kernel 6.12 sets the bit. */
	if (release_at_least(release, 6, 13) || (release_at_least(release, 6, 12) && rt))
		return FLAG_NEED_RESCHED_LAZY;
	return 0;
}

static void line_form_get(struct line_form *ret, const struct trace_info *info)
{
	const char *head = info->header->trace_header, *release = info->header->release;
	/* Tracers with a header of their own don't name all columns of their lines. */
	bool known = strstr(head, "TASK-PID") && strstr(head, "FUNCTION");
	const struct common_fields *common = event_table_common(info->events);

	*ret = (struct line_form){
		.context = !info->text.no_context,
		.flags = known ? !!strstr(head, "irqs-off") : !info->text.no_irq_info,
		.migrate = !common->migrate_offset &&
			   (common->lazy_offset || (known ? !!strstr(head, "migrate-disable")
							  : release_at_least(release, 5, 15))),
		.bh = known ? !!strstr(head, "BH-disabled") : release_at_least(release, 5, 17),
		.lazy_columns = common->lazy_offset,
		.had_tgid = strstr(head, "TGID"),
		.pid_width = release_at_least(release, 5, 10) ? 7 : 5,
		.counter = trace_clock_counts(info->header->trace_clock),
	};
	ret->lazy_bit = line_lazy_bit(ret, info);
}

static char line_irqs_column(const struct line_form *f, unsigned flags)
{
	bool off = flags & FLAG_IRQS_OFF, bh = f->bh && (flags & FLAG_BH_OFF);

	if (off)
		return bh ? 'D' : 'd';
	if (bh)
		return 'b';
	return flags & FLAG_IRQS_NOSUPPORT & ~f->lazy_bit ? 'X' : '.';
}

static char line_resched_column(const struct line_form *f, unsigned flags)
{
	/* Index: NEED_RESCHED, PREEMPT_RESCHED and LAZY as bits 0, 1, 2. */
	static const char letters[] = ".npNlbLB";
	unsigned i = 0;

	if (flags & FLAG_NEED_RESCHED)
		i |= 1;
	if (flags & FLAG_PREEMPT_RESCHED & ~f->lazy_bit)
		i |= 2;
	if (!f->lazy_columns && (flags & f->lazy_bit))
		i |= 4;
	return letters[i];
}

static char line_context_column(unsigned flags)
{
	if (flags & FLAG_NMI)
		return flags & FLAG_HARDIRQ ? 'Z' : 'z';
	if (flags & FLAG_HARDIRQ)
		return flags & FLAG_SOFTIRQ ? 'H' : 'h';
	return flags & FLAG_SOFTIRQ ? 's' : '.';
}

/* Readers accept [dX.][Nnp.][Hhs.]: choose the nearest in meaning. */
static char line_portable(char c, int column)
{
	static const char *const from[] = { "Db", "lLbB", "Zz" }, *const to[] = { "d.", "nNnN",
										  "Hh" };
	const char *p = c ? strchr(from[column], c) : NULL;

	return p ? to[column][p - from[column]] : c;
}

static void line_make_tables(struct line *l)
{
	static const char hex[] = "0123456789abcdef";

	for (unsigned i = 0; i < 100; i++) {
		l->digits[2 * i] = (char)('0' + i / 10);
		l->digits[2 * i + 1] = (char)('0' + i % 10);
	}
	for (unsigned i = 0; i < 256; i++) {
		char *f = l->flags[i], *p = l->preempt[i];

		f[0] = line_irqs_column(&l->form, i);
		f[1] = line_resched_column(&l->form, i);
		f[2] = line_context_column(i);
		for (int column = 0; l->style == LINE_PORTABLE && column < 3; column++)
			f[column] = line_portable(f[column], column);
		if (l->form.migrate) {
			p[0] = i & 0xf ? hex[i & 0xf] : '.';
			p[1] = i >> 4 ? hex[i >> 4] : '.';
		} else {
			/* "%x" of one or two digits. */
			p[0] = i > 0xf ? hex[i >> 4] : i ? hex[i] : '.';
			p[1] = i > 0xf ? hex[i & 0xf] : '\0';
		}
	}
}

#define ROUNDING 500 /* ns2usecs() rounds to nearest */

_cold_ _noinline_ static void fill_second(struct line *l, uint64_t ts)
{
	/* Above 2^64 - 500 the sum wraps, as in the kernel. */
	uint64_t second = (ts + ROUNDING) / NSEC_PER_SEC;

	l->second_ts = second * NSEC_PER_SEC - ROUNDING;
	l->second_len = (uint32_t)sprintf(l->second_text, " %5llu.", (unsigned long long)second);
}

int line_new(struct line **ret, const struct trace_info *info, bool tgid, enum line_style style)
{
	struct line *l = cache_lines_new(sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->info = info;
	l->tgid = tgid;
	l->style = style;
	l->host = style == LINE_PORTABLE ? info->host : NULL;
	fill_second(l, 0);
	line_form_get(&l->form, info);
	/* No reader accepts a TGID without flags, and none the columns for lazy preemption. */
	if (style == LINE_PORTABLE) {
		l->form.flags = l->form.context = true;
		l->form.lazy_columns = false;
	}
	line_make_tables(l);
	*ret = l;
	return 0;
}

struct line *line_free(struct line *l)
{
	free(l);
	return NULL;
}

/* Replaces newlines in a name: lines are read by column. */
static void line_tame_comm(char *comm)
{
	for (; *comm; comm++)
		if ((unsigned char)*comm < ' ' || *comm == 0x7f)
			*comm = '_';
}

static struct task *line_find_task(struct line *l, int32_t pid, uint64_t ts, char comm[static 64])
{
	struct task *task = pid > 0 ? task_table_find(l->info->tasks, pid, ts) : NULL;

	strcpy(comm, pid == 0 ? "<idle>" : pid < 0 ? "<XXX>" : "<...>");
	if (task) {
		task_see(task);
		if (task->comm[0])
			memcpy(comm, task->comm, sizeof(task->comm));
	}
	return task;
}

void line_comm(struct line *l, int32_t pid, uint64_t ts, char comm[static 64])
{
	line_find_task(l, pid, ts, comm);
}

_cold_ _noinline_ static void fill_cache(struct line *l, struct cached *c, int32_t pid, uint64_t ts)
{
	char comm[sizeof(((struct task *)0)->comm)];
	struct task *task = line_find_task(l, pid, ts, comm);
	const struct host_numbers *host = l->host;
	unsigned width = l->form.pid_width;
	int n;

	*c = (struct cached){ .pid = pid, .until_ts = UINT64_MAX };
	if (task) {
		c->from_ts = task->from_ts;
		c->until_ts = task_table_until(task);
		/* The oldest known life also covers all earlier times. */
		if (task_is_oldest(task))
			c->from_ts = 0;
	}
	if (l->style == LINE_PORTABLE)
		line_tame_comm(comm);
	/* Trace Viewer finds kernel threads by their names. */
	n = host ? snprintf(c->text, sizeof(c->text), "%s:%s-%-*d ", host->label, comm, (int)width,
			    host_task(host, pid))
		 : snprintf(c->text, sizeof(c->text), "%16s-%-*d ", comm, (int)width, pid);
	if (l->tgid && task && task->tgid)
		n += snprintf(c->text + n, sizeof(c->text) - (size_t)n, "(%*d) ", (int)width,
			      host_task(host, task->tgid));
	else if (l->tgid)
		n += snprintf(c->text + n, sizeof(c->text) - (size_t)n, "(%.*s) ", (int)width,
			      "-------");
	c->text[n] = '[';
	c->len = (uint32_t)n + 1;
	c->plain = is_plain(c->text, c->len);
}

void line_forget(struct line *l)
{
	memset(l->cache, 0, sizeof(l->cache));
}

static inline char *line_put_cpu(const struct line *l, char *p, uint32_t cpu)
{
	if (unlikely(cpu > 999))
		return p + sprintf(p, "%u", cpu);
	*p++ = (char)('0' + cpu / 100);
	memcpy(p, &l->digits[2 * (cpu % 100)], 2);
	return p + 2;
}

static inline char *line_put_time(struct line *l, char *p, uint64_t ts)
{
	uint32_t usecs, pairs;

	if (unlikely(l->form.counter))
		return p + sprintf(p, " %12llu: ", (unsigned long long)ts);
	if (unlikely(ts - l->second_ts >= NSEC_PER_SEC))
		fill_second(l, ts);
	usecs = (uint32_t)(ts - l->second_ts) / 1000;
	pairs = usecs / 100;
	memcpy(p, l->second_text, sizeof(l->second_text));
	p += l->second_len;
	memcpy(p, &l->digits[2 * (pairs / 100)], 2);
	memcpy(p + 2, &l->digits[2 * (pairs % 100)], 2);
	memcpy(p + 4, &l->digits[2 * (usecs % 100)], 2);
	memcpy(p + 6, ": ", 2);
	return p + 8;
}

static char *line_put_count(char *p, unsigned count)
{
	if (count)
		return p + sprintf(p, "%x", count);
	*p = '.';
	return p + 1;
}

_cold_ _noinline_ static char *line_put_lazy_columns(const struct line *l, char *p,
						     const struct trace_event *ev)
{
	const struct common_fields *common = event_table_common(l->info->events);
	const char *flags = l->flags[ev->flags];
	unsigned depth = ev->preempt_count, migrate = ev->rec.data[common->migrate_offset];

	if (l->form.migrate) {
		migrate = depth >> 4;
		depth &= 0xf;
	}
	*p++ = flags[0];
	*p++ = flags[1];
	*p++ = ev->flags & l->form.lazy_bit ? 'L' : '.';
	*p++ = flags[2];
	p = line_put_count(p, depth);
	p = line_put_count(p, ev->rec.data[common->lazy_offset]);
	return line_put_count(p, migrate);
}

_hot_ bool line_prefix(struct line *l, const struct trace_event *ev, struct buf *out)
{
	struct cached *c = &l->cache[(uint32_t)ev->pid & (CACHE_SIZE - 1)];
	char *p = buf_reserve(out, TEXT_MAX + 64), *start = p;

	if (unlikely(!p || !l->form.context))
		return true;
	if (unlikely(c->pid != ev->pid || !c->len || ev->rec.ts < c->from_ts ||
		     ev->rec.ts >= c->until_ts))
		fill_cache(l, c, ev->pid, ev->rec.ts);
	memcpy(p, c->text, TEXT_USUAL);
	if (unlikely(c->len > TEXT_USUAL))
		memcpy(p + TEXT_USUAL, c->text + TEXT_USUAL, TEXT_MAX - TEXT_USUAL);
	p = line_put_cpu(l, p + c->len, unlikely(l->host) ? host_cpu(l->host, ev->cpu) : ev->cpu);
	memcpy(p, "] ", 2);
	p += 2;
	if (unlikely(l->form.lazy_columns) && l->form.flags) {
		p = line_put_lazy_columns(l, p, ev);
	} else if (likely(l->form.flags)) {
		const char *preempt = l->preempt[ev->preempt_count];

		memcpy(p, l->flags[ev->flags], 3);
		memcpy(p + 3, preempt, 2);
		p += 4 + !!preempt[1];
	}
	p = line_put_time(l, p, ev->rec.ts);
	out->len += (size_t)(p - start);
	return c->plain;
}

/* One line for each column of flags. Returns how many there are. */
static int line_legend_flags(const struct line *l, const char *indent, struct buf *out)
{
	const struct line_form *f = &l->form;
	const char *const names[] = {
		f->bh ? "irqs-off/BH-disabled" : "irqs-off",
		"need-resched",
		f->lazy_columns ? "need-resched-lazy" : NULL,
		"hardirq/softirq",
		"preempt-depth",
		f->lazy_columns ? "preempt-lazy-depth" : NULL,
		f->lazy_columns || f->migrate ? "migrate-disable" : NULL,
	};
	static const char lead[] = "#                              ";
	int dashes = f->lazy_columns ? 7 : 5, n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!names[i])
			continue;
		buf_printf(out, "%s%s%.*s %s_%.*s=> %s\n", lead, indent, MAX(n - 1, 0), pipes,
			   n ? "/ " : " ", dashes - n, "-------", names[i]);
		n++;
	}
	buf_printf(out, "%s%s%.*s /     delay\n", lead, indent, n - 1, pipes);
	return n;
}

/* The legend of Linux 5.10 and later, where none with these columns was recorded. */
void line_legend(const struct line *l, struct buf *out)
{
	int n = l->form.flags ? line_legend_flags(l, l->tgid ? "          " : "", out) : 0;

	buf_printf(out, "#           TASK-PID  %s   CPU#  %.*s%*sTIMESTAMP  FUNCTION\n",
		   l->tgid ? "     TGID " : "", n, pipes, n == 0 || n == 4 ? 3 : 2, "");
	buf_printf(out, "#              | |    %s     |   %.*s%*s|         |\n",
		   l->tgid ? "       |  " : "", n, pipes, n == 5 ? 5 : 6, "");
}

static bool line_is_name(const char *tracer)
{
	size_t len = strspn(tracer, "abcdefghijklmnopqrstuvwxyz0123456789_-");

	return len && len < 64 && !tracer[len];
}

void line_header(const struct line *l, const struct ledger_totals *totals, struct buf *out)
{
	static const char counts[] = "# entries-in-buffer/entries-written:";
	const char *head = l->info->header->trace_header, *p;
	const char *tracer =
		line_is_name(l->info->header->tracer) ? l->info->header->tracer : "nop";

	buf_printf(out, "# tracer: %s\n#\n", tracer);
	if (!l->form.context)
		return;
	/* The number is unknown while the recording goes on. */
	if (totals)
		buf_printf(out, "%s %llu/%llu   #P:%u\n#\n", counts,
			   (unsigned long long)totals->in_buffer,
			   (unsigned long long)totals->written,
			   l->info->header->cpus_online ?: l->info->header->cpus);
	/* Use the kernel's own legend if it has the same columns. */
	p = strstr(head, counts);
	p = p ? strchr(p, '\n') : NULL;
	if (!p || strncmp(p, "\n#\n", 3) != 0 || l->form.had_tgid != l->tgid) {
		line_legend(l, out);
		return;
	}
	for (p += 3; *p == '#';) {
		const char *end = strchrnul(p, '\n');

		buf_append(out, p, (size_t)(end - p));
		buf_putc(out, '\n');
		p = *end ? end + 1 : end;
	}
}
