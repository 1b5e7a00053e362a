/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/log.h"
#include "daemon/service/session.h"

/* Prometheus scrapes node_exporter every 15 seconds or less often. */
#define INTERVAL_NS (10 * NSEC_PER_SEC)
/* How long, and how many, ended sessions are still reported. */
#define PAST_NS (300 * NSEC_PER_SEC)
#define PAST_MAX 32

/* One session's row in each table. */
struct row {
	const char *name;
	uid_t uid;
	uint64_t recording; /* 1 or 0 */
	uint64_t start_ns;  /* since 1970 */
	uint64_t events, lost, bytes, cpu_ns, buffer_bytes, spool_bytes;
};

struct metrics_past {
	TAILQ_ENTRY(metrics_past) list;
	struct row row;
	char *name; /* owned; the row's */
	uint64_t over_ns;
};

void metrics_init(struct metrics *m)
{
	*m = (struct metrics){ 0 };
	TAILQ_INIT(&m->past);
}

static void metrics_forget(struct metrics *m, struct metrics_past *p)
{
	TAILQ_REMOVE(&m->past, p, list);
	m->past_count--;
	free(p->name);
	free(p);
}

void metrics_deinit(struct metrics *m)
{
	while (!TAILQ_EMPTY(&m->past))
		metrics_forget(m, TAILQ_FIRST(&m->past));
}

static uint64_t metrics_since_1970(uint64_t boot_ns)
{
	return now_ns(CLOCK_REALTIME) - (now_ns(CLOCK_BOOTTIME) - boot_ns);
}

static struct row metrics_row(const Traced__Control__Session *d)
{
	return (struct row){
		.name = d->name,
		.uid = d->uid,
		.recording = d->state == TRACED__CONTROL__SESSION__STATE__RECORDING,
		.start_ns = metrics_since_1970(d->started_boot_ns),
		/*
		 * Includes events that a flight recorder has overwritten: a counter must never
		 * decrease.
		 */
		.events = d->events + d->overwritten,
		.lost = d->lost,
		.bytes = d->bytes,
		.cpu_ns = d->cpu_time_ns,
		.buffer_bytes = d->memory_bytes,
		.spool_bytes = d->spool_bytes,
	};
}

static void metrics_forget_old(struct metrics *m)
{
	uint64_t now = now_ns(CLOCK_BOOTTIME);
	struct metrics_past *p;

	while ((p = TAILQ_FIRST(&m->past)) &&
	       (m->past_count > PAST_MAX || now - p->over_ns > PAST_NS))
		metrics_forget(m, p);
}

void metrics_session_over(const struct session *s)
{
	struct metrics *m = &s->manager->metrics;
	struct metrics_past *p;

	if (!s->last)
		return;
	m->sessions++;
	m->events += s->last->events + s->last->overwritten;
	m->lost += s->last->lost;
	m->bytes += s->last->bytes;
	if (!s->manager->config.metrics)
		return;
	p = calloc(1, sizeof(*p));
	if (!p)
		return;
	p->name = strdup(s->name);
	if (!p->name) {
		free(p);
		return;
	}
	p->row = metrics_row(s->last);
	p->row.name = p->name;
	p->over_ns = now_ns(CLOCK_BOOTTIME);
	TAILQ_INSERT_TAIL(&m->past, p, list);
	m->past_count++;
	metrics_forget_old(m);
}

uint64_t metrics_resident_bytes(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long size, resident;

	if (!f || fscanf(f, "%llu %llu", &size, &resident) != 2)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

struct rows {
	struct row *rows;
	size_t count;
	Traced__Control__Session **described; /* of live sessions; the rows borrow their names */
	size_t described_count;
};

static void metrics_rows_deinit(struct rows *r)
{
	for (size_t i = 0; i < r->described_count; i++)
		traced__control__session__free_unpacked(r->described[i], NULL);
	free(r->described);
	free(r->rows);
}

static bool metrics_has_row(const struct rows *r, const struct row *like)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->rows[i].uid == like->uid && strcmp(r->rows[i].name, like->name) == 0)
			return true;
	return false;
}

/* Collects live sessions, then ended ones whose names are not used again. */
static int metrics_collect(struct manager *m, struct rows *ret)
{
	size_t max = m->session_count + m->metrics.past_count;
	const struct metrics_past *p;
	struct session *s;

	ret->rows = calloc(max + 1, sizeof(*ret->rows));
	ret->described = calloc(m->session_count + 1, sizeof(*ret->described));
	if (!ret->rows || !ret->described)
		return -ENOMEM;
	TAILQ_FOREACH(s, &m->sessions, list)
	{
		Traced__Control__Session *d =
			s->state == SESSION_ARMING ? NULL : session_describe(s);

		if (!d)
			continue;
		ret->described[ret->described_count++] = d;
		ret->rows[ret->count++] = metrics_row(d);
	}
	/* Keep only the latest of ended sessions with the same name. */
	TAILQ_FOREACH_REVERSE(p, &m->metrics.past, metrics_past_list, list)
	if (!metrics_has_row(ret, &p->row))
		ret->rows[ret->count++] = p->row;
	return 0;
}

enum unit { COUNT, SECONDS };

static void metrics_put_value(struct buf *out, uint64_t value, enum unit unit)
{
	if (unit == SECONDS)
		buf_printf(out, " %" PRIu64 ".%09" PRIu64 "\n", value / NSEC_PER_SEC,
			   value % NSEC_PER_SEC);
	else
		buf_printf(out, " %" PRIu64 "\n", value);
}

static void metrics_put_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP traced_%s %s\n# TYPE traced_%s %s\n", name, help, name, type);
}

static void metrics_put_label(struct buf *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n') {
			buf_puts(out, "\\n");
			continue;
		}
		if (*value == '\\' || *value == '"')
			buf_putc(out, '\\');
		buf_putc(out, *value);
	}
}

static void metrics_put_sessions(struct buf *out, const struct rows *rows)
{
	static const struct {
		const char *name, *type, *help;
		size_t offset;
		enum unit unit;
	} families[] = {
		{ "session_recording", "gauge", "1 while the session records, 0 once it has ended.",
		  offsetof(struct row, recording), COUNT },
		{ "session_start_time_seconds", "gauge", "When it began, in seconds since 1970.",
		  offsetof(struct row, start_ns), SECONDS },
		{ "session_events_total", "counter", "Events recorded.",
		  offsetof(struct row, events), COUNT },
		{ "session_lost_events_total", "counter", "Events that the kernel could not keep.",
		  offsetof(struct row, lost), COUNT },
		{ "session_stream_bytes_total", "counter", "Bytes of the capture stream.",
		  offsetof(struct row, bytes), COUNT },
		{ "session_cpu_seconds_total", "counter", "CPU time that recording cost traced.",
		  offsetof(struct row, cpu_ns), SECONDS },
		{ "session_buffer_bytes", "gauge", "Memory of the kernel's ring buffers.",
		  offsetof(struct row, buffer_bytes), COUNT },
		{ "session_spool_bytes", "gauge", "Bytes of the spool that wait to be written out.",
		  offsetof(struct row, spool_bytes), COUNT },
	};

	for (size_t f = 0; f < ARRAY_SIZE(families) && rows->count; f++) {
		metrics_put_head(out, families[f].name, families[f].type, families[f].help);
		for (size_t i = 0; i < rows->count; i++) {
			const struct row *row = &rows->rows[i];
			uint64_t value;

			memcpy(&value, (const char *)row + families[f].offset, sizeof(value));
			buf_printf(out, "traced_%s{session=\"", families[f].name);
			metrics_put_label(out, row->name);
			buf_printf(out, "\",user=\"%u\"}", row->uid);
			metrics_put_value(out, value, families[f].unit);
		}
	}
}

static void metrics_put(struct buf *out, const char *name, const char *type, const char *help,
			uint64_t value, enum unit unit)
{
	metrics_put_head(out, name, type, help);
	buf_printf(out, "traced_%s", name);
	metrics_put_value(out, value, unit);
}

static void metrics_put_daemon(struct buf *out, const struct manager *m, const struct rows *rows,
			       bool up)
{
	uint64_t started = m->metrics.sessions + rows->described_count, spool = 0;
	uint64_t events = m->metrics.events, lost = m->metrics.lost, bytes = m->metrics.bytes;

	for (size_t i = 0; i < rows->described_count; i++) {
		events += rows->rows[i].events;
		lost += rows->rows[i].lost;
		bytes += rows->rows[i].bytes;
		spool += rows->rows[i].spool_bytes;
	}
	metrics_put(out, "up", "gauge", "1 while traced runs, 0 once it has ended.", up, COUNT);
	metrics_put(out, "start_time_seconds", "gauge", "When traced began, in seconds since 1970.",
		    metrics_since_1970(m->started_boot_ns), SECONDS);
	metrics_put(out, "cpu_seconds_total", "counter",
		    "CPU time of traced, without its exporters'.", now_ns(CLOCK_PROCESS_CPUTIME_ID),
		    SECONDS);
	metrics_put(out, "resident_memory_bytes", "gauge", "Memory of traced.",
		    up ? metrics_resident_bytes() : 0, COUNT);
	metrics_put(out, "clients", "gauge", "Connections.", up ? m->connection_count : 0, COUNT);
	metrics_put(out, "sessions", "gauge", "Sessions that record or wait to be written out.",
		    up ? m->session_count : 0, COUNT);
	metrics_put(out, "sessions_total", "counter", "Recordings since traced began.", started,
		    COUNT);
	metrics_put(out, "events_total", "counter", "Events of all sessions.", events, COUNT);
	metrics_put(out, "lost_events_total", "counter", "Lost events of all sessions.", lost,
		    COUNT);
	metrics_put(out, "stream_bytes_total", "counter", "Bytes of all capture streams.", bytes,
		    COUNT);
	metrics_put(out, "spool_bytes", "gauge",
		    "Bytes of all sessions that wait to be written out.", spool, COUNT);
}

/* up: the daemon runs. */
static int metrics_format(struct manager *m, bool up, struct buf *out)
{
	_cleanup_(metrics_rows_deinit) struct rows rows = { 0 };
	int r;

	metrics_forget_old(&m->metrics);
	r = metrics_collect(m, &rows);
	if (r < 0)
		return r;
	metrics_put_daemon(out, m, &rows, up);
	metrics_put_sessions(out, &rows);
	return buf_string(out) ? 0 : -ENOMEM;
}

static void metrics_write_file(struct manager *m, bool up)
{
	static struct log_limit limit = LOG_LIMIT_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *path = m->config.metrics;
	int r;

	if (!path || m->options.private)
		return;
	m->metrics.written_ns = now_ns(CLOCK_BOOTTIME);
	r = metrics_format(m, up, &text);
	/*
	 * World-readable: its reader is not root. PATH.new is not "*.prom", so the collector does
	 * not read a part. The file is obsolete at the next update: it needs no sync.
	 */
	if (r >= 0)
		r = replace_file(path, text.data, text.len, 0644, false);
	if (r < 0 && log_limit_pass(&limit))
		log_warning("can't write the metrics to %s: %s", path, strerror(-r));
}

void metrics_write(struct manager *m)
{
	if (!m->stopping)
		metrics_write_file(m, true);
}

void metrics_tick(struct manager *m)
{
	if (m->config.metrics && now_ns(CLOCK_BOOTTIME) - m->metrics.written_ns >= INTERVAL_NS)
		metrics_write(m);
}

void metrics_close(struct manager *m)
{
	if (m->metrics.written_ns)
		metrics_write_file(m, false);
}
