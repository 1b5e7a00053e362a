/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/report.h"

#include <stdarg.h>

#include "base/io.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "daemon/capture/recording.h"
#include "proto/capture.pb-c.h"

/* Leaves room for the message's other fields, and for the mark of a cut. */
#define NOTE_TEXT_MAX (STREAM_NOTE_MAX - 64)
#define COUNTS_FRESH_NS NSEC_PER_MSEC

void report_deinit(struct capture_report *r)
{
	for (size_t i = 0; i < r->warning_count; i++)
		free(r->warnings[i]);
	free(r->warnings);
	free(r->cpu_stats);
}

_printf_(3, 0) static void report_add(struct capture_report *r, bool missing, const char *fmt,
				      va_list ap)
{
	char *text;

	if (vec_reserve_exact(r->warnings, r->warning_count, 1) < 0)
		return;
	if (vasprintf(&text, fmt, ap) < 0)
		return;
	for (size_t i = 0; i < r->warning_count; i++) {
		if (strcmp(r->warnings[i], text) == 0) {
			free(text);
			return;
		}
	}
	if (missing && r->warning_count < STREAM_NOTES_MAX)
		r->warnings_missing |= UINT64_C(1) << r->warning_count;
	r->warnings[r->warning_count++] = text;
}

void report_warn(struct capture_report *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report_add(r, false, fmt, ap);
	va_end(ap);
}

void report_warn_missing(struct capture_report *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report_add(r, true, fmt, ap);
	va_end(ap);
}

int report_write_note(struct stream_writer *w, const char *text, enum note_kind kind)
{
	static const char cut[] = " ...";
	Traced__Capture__Note note = TRACED__CAPTURE__NOTE__INIT;
	char clipped[NOTE_TEXT_MAX + sizeof(cut)];
	size_t len = utf8_clip(text, NOTE_TEXT_MAX);

	snprintf(clipped, sizeof(clipped), "%.*s%s", (int)len, text, text[len] ? cut : "");
	note.text = clipped;
	note.boot_ns = now_ns(CLOCK_BOOTTIME);
	note.missing = kind == NOTE_MISSING;
	note.marks_lost = kind == NOTE_MARKS_LOST;
	return stream_write_message(w, CHUNK_NOTE, &note.base);
}

int report_write_notes(struct capture_report *r, struct stream_writer *w)
{
	int e = 0;

	while (e == 0 && r->warnings_noted < r->warning_count) {
		size_t n = r->warnings_noted++;

		if (n + 1 < STREAM_NOTES_MAX)
			e = report_write_note(w, r->warnings[n],
					      r->warnings_missing >> n & 1 ? NOTE_MISSING
									   : NOTE_PLAIN);
		else if (n + 1 == STREAM_NOTES_MAX)
			e = report_write_note(w, "there are more notes than a stream holds",
					      NOTE_MISSING);
	}
	return e;
}

/* Fills one CPU's row. Returns the CPU's overwritten events, which ring mode does not lose. */
static uint64_t report_count_cpu(const struct ring_cpu *cpu, bool ring_mode,
				 struct capture_cpu_stats *ret)
{
	const struct cpu_counts *counts = &cpu->counts;

	*ret = (struct capture_cpu_stats){
		.cpu = cpu->reader.cpu,
		.events = counts->read,
		.lost = counts->commit_overrun + counts->dropped,
		.bytes = cpu->reader.bytes,
		.offline = !cpu->online,
	};
	if (ring_mode) {
		ret->events += counts->entries;
		return counts->overrun;
	}
	ret->lost += counts->overrun;
	return 0;
}

void capture_get_stats(struct capture *c, struct capture_stats *ret)
{
	struct ring *ring = &c->run.rings[BUFFER_MAIN];
	struct capture_report *report = &c->report;
	struct capture_stats s = {
		.start_boot_ns = c->run.start_boot_ns,
		.cpu_ns = c->run.cpu_ns,
		.bytes = report->bytes_before + c->run.writer.bytes,
		.event_types = report->event_types,
		.reader = "none",
		.instance = c->setup.main ?: "top level",
		.warning_count = report->warning_count,
		.warnings = (const char *const *)report->warnings,
	};

	if (!report->cpu_stats)
		report->cpu_stats = calloc(ring->cpu_count + 1, sizeof(*report->cpu_stats));
	/* Right after the start, and after the end, they are known. */
	if (now_ns(CLOCK_BOOTTIME) - ring->counted_boot_ns >= COUNTS_FRESH_NS)
		ring_count(ring);
	for (unsigned cpu = 0; report->cpu_stats && cpu < ring->cpu_count; cpu++) {
		const struct cpu_reader *reader = &ring->cpus[cpu].reader;
		struct capture_cpu_stats *row = &report->cpu_stats[cpu];

		s.overwritten += report_count_cpu(&ring->cpus[cpu], c->setup.ring_mode, row);
		s.events += row->events;
		s.lost += row->lost;
		if (reader->fd >= 0)
			s.reader = cpu_reader_kind_name(reader->kind);
	}
	s.cpus = report->cpu_stats;
	s.cpu_count = report->cpu_stats ? ring->cpu_count : 0;
	*ret = s;
}
