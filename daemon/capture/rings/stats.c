/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the kernel's own counts of its ring buffers. */
#include "base/io.h"
#include "daemon/capture/rings/ring.h"
#include "proto/capture.pb-c.h"

static bool stats_find_count(const char *text, const char *name, uint64_t *ret)
{
	size_t len = strlen(name);

	/* Match at the start of a line: "commit overrun" ends in "overrun", too. */
	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, name, len) == 0 && p[len] == ':') {
			*ret = strtoull(p + len + 1, NULL, 10);
			return true;
		}
	}
	return false;
}

/*
 * Parses "  123.456789", in seconds. Returns 0 if the clock counts another unit, or an old kernel
 * has no such line.
 */
static uint64_t stats_find_time(const char *text, const char *name)
{
	size_t len = strlen(name);
	uint64_t seconds;
	char *end;

	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, name, len) != 0 || p[len] != ':')
			continue;
		seconds = strtoull(p + len + 1, &end, 10);
		return *end == '.' ? seconds * NSEC_PER_SEC +
					     strtoull(end + 1, NULL, 10) * NSEC_PER_USEC
				   : 0;
	}
	return 0;
}

int cpu_counts_parse(struct cpu_counts *ret, const char *text)
{
	struct cpu_counts c = { 0 };

	if (!stats_find_count(text, "entries", &c.entries) ||
	    !stats_find_count(text, "overrun", &c.overrun) ||
	    !stats_find_count(text, "commit overrun", &c.commit_overrun) ||
	    !stats_find_count(text, "bytes", &c.bytes) ||
	    !stats_find_count(text, "dropped events", &c.dropped) ||
	    !stats_find_count(text, "read events", &c.read))
		return -EBADMSG;
	c.now_ns = stats_find_time(text, "now ts");
	c.oldest_ns = stats_find_time(text, "oldest event ts");
	*ret = c;
	return 0;
}

int ring_count(struct ring *ring)
{
	if (ring->unread)
		return 0;
	ring_read_online(ring);
	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++) {
		_cleanup_buf_ struct buf text = BUF_INIT;
		char path[64];
		int r;

		snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpu);
		r = tracefs_read(ring->dir, path, &text);
		if (r == -ENOENT || r == -ENODEV)
			continue;
		if (!cpu)
			ring->counted_boot_ns = now_ns(CLOCK_BOOTTIME);
		if (r == 0 && !buf_string(&text))
			r = -ENOMEM;
		if (r == 0)
			r = cpu_counts_parse(&ring->cpus[cpu].counts, text.data);
		if (r < 0)
			return r;
	}
	return 0;
}

int ring_write_stats(const struct ring *ring, struct stream_writer *w, unsigned phase)
{
	_cleanup_free_ Traced__Capture__CpuStats *rows = calloc(ring->cpu_count + 1, sizeof(*rows));
	_cleanup_free_ Traced__Capture__CpuStats **list =
		calloc(ring->cpu_count + 1, sizeof(*list));
	Traced__Capture__Stats msg = TRACED__CAPTURE__STATS__INIT;

	if (!rows || !list)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < ring->cpu_count; cpu++) {
		const struct cpu_counts *c = &ring->cpus[cpu].counts;

		rows[cpu] = (Traced__Capture__CpuStats)TRACED__CAPTURE__CPU_STATS__INIT;
		rows[cpu].cpu = cpu;
		rows[cpu].entries = c->entries;
		rows[cpu].overrun = c->overrun;
		rows[cpu].commit_overrun = c->commit_overrun;
		rows[cpu].dropped = c->dropped;
		rows[cpu].read = c->read;
		rows[cpu].bytes = c->bytes;
		rows[cpu].now_ns = c->now_ns;
		rows[cpu].oldest_ns = c->oldest_ns;
		rows[cpu].offline = !ring->cpus[cpu].online;
		list[cpu] = &rows[cpu];
	}
	msg.cpus = list;
	msg.n_cpus = ring->cpu_count;
	msg.phase = phase;
	msg.boot_ns = ring->counted_boot_ns ?: now_ns(CLOCK_BOOTTIME);
	msg.buffer = ring->buffer;
	return stream_write_message(w, CHUNK_STATS, &msg.base);
}
