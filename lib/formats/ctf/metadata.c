/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes the metadata, in the Trace Stream Description Language of CTF 1.8. */
#include <inttypes.h>

#include "base/io.h"
#include "base/wide.h"
#include "formats/ctf/ctf.h"
#include "marks/clock_map.h"

static const char types[] =
	"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
	"typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
	"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
	"typealias integer { size = 8; align = 8; signed = true; } := int8_t;\n"
	"typealias integer { size = 16; align = 8; signed = true; } := int16_t;\n"
	"typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n"
	"typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n"
	"typealias integer { size = 8; align = 8; signed = false; base = 16; } := hex8_t;\n"
	"typealias integer { size = 16; align = 8; signed = false; base = 16; } := hex16_t;\n"
	"typealias integer { size = 32; align = 8; signed = false; base = 16; } := hex32_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; base = 16; } := hex64_t;\n"
	"typealias integer { size = 8; align = 8; signed = true; encoding = UTF8; } := char_t;\n"
	"\n";

/* Appends any text as a quoted string. */
static void metadata_put_quoted(struct buf *b, const char *text, size_t len)
{
	buf_putc(b, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			buf_printf(b, "\\%c", c);
		else if (c < ' ' || c == 0x7f)
			buf_printf(b, "\\%03o", c);
		else
			buf_putc(b, (char)c);
	}
	buf_putc(b, '"');
}

int64_t ctf_begin_class(struct ctf *c, enum ctf_stream_class stream_class, const char *name,
			size_t len)
{
	uint32_t id = c->class_count[stream_class];

	if (id >= CTF_CLASSES_MAX)
		return -EOVERFLOW;
	c->class_count[stream_class]++;
	buf_puts(&c->classes, "event {\n\tname = ");
	metadata_put_quoted(&c->classes, name, len);
	buf_printf(&c->classes, ";\n\tid = %" PRIu32 ";\n\tstream_id = %u;\n\tfields := struct {\n",
		   id, stream_class);
	return id;
}

void ctf_end_class(struct ctf *c)
{
	buf_puts(&c->classes, "\t};\n};\n\n");
}

static void metadata_put_trace(const struct ctf *c, struct buf *b)
{
	const uint8_t *uuid = c->info->header->uuid.data;

	buf_puts(b, "trace {\n\tmajor = 1;\n\tminor = 8;\n");
	if (ctf_has_uuid(c)) {
		buf_puts(b, "\tuuid = \"");
		for (unsigned i = 0; i < CTF_UUID_LEN; i++)
			buf_printf(b, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
				   uuid[i]);
		buf_puts(b, "\";\n");
	}
	buf_printf(b,
		   "\tbyte_order = %s;\n"
		   "\tpacket.header := struct {\n"
		   "\t\tuint32_t magic;\n"
		   "%s"
		   "\t\tuint32_t stream_id;\n"
		   "\t};\n"
		   "};\n\n",
		   c->info->header->big_endian ? "be" : "le",
		   ctf_has_uuid(c) ? "\t\tuint8_t uuid[16];\n" : "");
}

static void metadata_put_env(struct buf *b, const char *key, const char *value)
{
	if (!*value)
		return;
	buf_printf(b, "\t%s = ", key);
	metadata_put_quoted(b, value, strlen(value));
	buf_puts(b, ";\n");
}

/* Losses of each CPU that has some. */
static void metadata_put_losses(const struct export_result *result, struct buf *b)
{
	for (size_t i = 0; i < result->ledger_count; i++) {
		const struct ledger_row *row = &result->ledger[i];
		uint64_t lost = row->lost_overrun + row->lost_other;

		if (lost)
			buf_printf(b,
				   "\tcpu_%u_events_lost = %" PRIu64 ";\n"
				   "\tcpu_%u_gaps = %" PRIu64 ";\n",
				   row->cpu, lost, row->cpu, row->gaps);
		if (row->left_out)
			buf_printf(b, "\tcpu_%u_events_left_out = %" PRIu64 ";\n", row->cpu,
				   row->left_out);
		if (row->samples_lost)
			buf_printf(b, "\tcpu_%u_samples_lost = %" PRIu64 ";\n", row->cpu,
				   row->samples_lost);
	}
}

/* Trace Compass interprets event and field names by tracer_name. */
static void metadata_put_environment(const struct ctf *c, const struct export_result *result,
				     struct buf *b)
{
	const Traced__Capture__Header *h = c->info->header;

	buf_puts(
		b,
		"/* Events and fields have the kernel's names, as in perf's traces: readers go by\n"
		" * tracer_name. What recorded it is \"recorder\". */\n"
		"env {\n"
		"\tdomain = \"kernel\";\n"
		"\ttracer_name = \"perf\";\n");
	metadata_put_env(b, "recorder", h->program);
	metadata_put_env(b, "hostname", h->nodename);
	metadata_put_env(b, "sysname", h->sysname);
	metadata_put_env(b, "kernel_release", h->release);
	metadata_put_env(b, "kernel_version", h->kernel_version);
	metadata_put_env(b, "machine", h->machine);
	metadata_put_env(b, "trace_clock", h->trace_clock);
	metadata_put_env(b, "kernel_tracer", h->tracer);
	buf_printf(b, "\tevents = %" PRIu64 ";\n\tevents_lost = %" PRIu64 ";\n", result->events,
		   result->lost);
	metadata_put_losses(result, b);
	if (result->incomplete)
		buf_puts(b, "\tincomplete = 1;\n");
	for (size_t i = 0; i < result->warning_count; i++) {
		char key[32];

		snprintf(key, sizeof(key), "warning_%zu", i + 1);
		metadata_put_env(b, key, result->warnings[i]);
	}
	buf_puts(b, "};\n\n");
}

/*
 * Real time at trace clock 0, by the first reading of both. Later clock settings are ignored:
 * distances between events are those of the trace clock.
 */
static bool metadata_find_origin(const struct ctf *c, uint64_t *freq, uint64_t *seconds,
				 uint64_t *cycles)
{
	_cleanup_(clock_map_deinit) struct clock_map map = { 0 };
	const struct clock_point *first, *last;
	uint64_t real, ticks, now;

	*freq = NSEC_PER_SEC;
	if (clock_map_of(&map, c->info, CLOCK_REALTIME) < 0 || (!map.count && !map.identity))
		return false;
	*seconds = *cycles = 0;
	if (map.identity)
		return true;
	first = map.points;
	last = first + map.count - 1;
	if (map.ticks) {
		real = last->from - first->from;
		ticks = last->to - first->to;
		/*
		 * Implausible: no counter is that fast, and real time in cycles must fit 64 bits.
		 */
		if (last->from <= first->from || last->to <= first->to || ticks / 10 > real)
			return false;
		*freq = mul_div(ticks, NSEC_PER_SEC, real);
	}
	if (!*freq || first->from > INT64_MAX ||
	    first->from / NSEC_PER_SEC > UINT64_MAX / *freq - 1)
		return false;
	now = mul_div(first->from, *freq, NSEC_PER_SEC);
	/* TAI is equal to real time or ahead of it; Trace Compass ignores a sign. */
	if (now < first->to && first->to - now < *freq / 1000)
		now = first->to;
	if (now < first->to)
		return false;
	*seconds = (now - first->to) / *freq;
	*cycles = (now - first->to) % *freq;
	return true;
}

/* Readers count ns since 1970, or since the trace clock's 0, in 63 bits. */
uint64_t ctf_max_time(const struct ctf *c)
{
	uint64_t freq, seconds, cycles, max = INT64_MAX;

	if (!metadata_find_origin(c, &freq, &seconds, &cycles))
		return max;
	seconds += cycles / freq + 1;
	if (seconds >= max / NSEC_PER_SEC)
		return 0;
	max -= seconds * NSEC_PER_SEC;
	/* This cuts a faster counter some years early. */
	return freq < NSEC_PER_SEC ? mul_div(max, freq, NSEC_PER_SEC) : max;
}

static void metadata_put_clock(const struct ctf *c, struct buf *b)
{
	const char *name = c->info->header->trace_clock;
	uint64_t freq, seconds = 0, cycles = 0;
	bool tied = metadata_find_origin(c, &freq, &seconds, &cycles);

	buf_puts(b, "clock {\n\tname = \"trace_clock\";\n\tdescription = ");
	if (tied)
		metadata_put_quoted(b, name, strlen(name));
	else
		buf_puts(b, "\"not tied to real time\"");
	buf_printf(b,
		   ";\n\tfreq = %" PRIu64 ";\n\toffset_s = %" PRIu64 ";\n\toffset = %" PRIu64
		   ";\n\tabsolute = %s;\n};\n\n",
		   freq, seconds, cycles, tied ? "true" : "false");
	buf_puts(b, "typealias integer {\n"
		    "\tsize = 64; align = 8; signed = false; map = clock.trace_clock.value;\n"
		    "} := trace_time_t;\n\n");
}

static void metadata_put_stream(enum ctf_stream_class stream_class, struct buf *b)
{
	buf_printf(b,
		   "stream {\n"
		   "\tid = %u;\n"
		   "\tpacket.context := struct {\n"
		   "\t\ttrace_time_t timestamp_begin;\n"
		   "\t\ttrace_time_t timestamp_end;\n"
		   "\t\tuint64_t content_size;\n"
		   "\t\tuint64_t packet_size;\n"
		   "\t\tuint64_t packet_seq_num;\n"
		   "\t\tuint64_t events_discarded;\n"
		   "%s"
		   "\t};\n"
		   "\tevent.header := struct {\n"
		   "\t\ttrace_time_t timestamp;\n"
		   "\t\tuint16_t id;\n"
		   "\t};\n"
		   "%s"
		   "};\n\n",
		   stream_class, stream_class == CTF_KERNEL ? "\t\tuint32_t cpu_id;\n" : "",
		   stream_class == CTF_KERNEL ? "\tevent.context := struct {\n"
						"\t\thex8_t _common_flags;\n"
						"\t\tuint8_t _common_preempt_count;\n"
						"\t\tint32_t _common_pid;\n"
						"\t\tint32_t _tgid;\n"
						"\t\tstring _comm;\n"
						"\t};\n"
					      : "");
}

int ctf_put_metadata(const struct ctf *c, const struct export_result *result, struct buf *b)
{
	buf_puts(b, "/* CTF 1.8 */\n\n");
	buf_puts(b, types);
	metadata_put_trace(c, b);
	metadata_put_environment(c, result, b);
	metadata_put_clock(c, b);
	for (unsigned i = 0; i < CTF_STREAM_CLASSES; i++)
		if (i == CTF_KERNEL || c->class_count[i])
			metadata_put_stream(i, b);
	return buf_error(b);
}
