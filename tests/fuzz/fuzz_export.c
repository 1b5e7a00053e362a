/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stream after a recording's head, through the whole exporter, into one format. Byte 0: the
 * kind of machine, and the form of the rest (enum rest). Byte 1: the format. The rest: bytes of the
 * stream, or pieces that become a valid stream: a byte for the type, one for the CPU, two for the
 * length, then the content.
 *
 * Of the last formats, the stream is what two machines recorded, which become one file.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "formats/formats.h"
#include "make_formats.h"
#include "report/report.h"
#include "trace/host_clock.h"
#include "trace/host_numbers.h"

#define SUBBUF_SIZE 1024

/* The form of the rest, in byte 0. */
enum { MACHINE_32 = 1, MACHINE_BIG = 2, REST_PIECES = 4, TWO_THREADS = 8, GRAPH = 16 };

/* Types of pieces, in addition to those of chunks. */
enum { PIECE_SUBBUF, PIECE_RECORDS, PIECE_TYPES = CHUNK_TYPES_END };

/* For events of the heads below, with `functions` last: only some machines have its events. */
static const char *const reports[] = { "sched", "timehist", "runq",   "offcpu",	  "blame",
				       "marks", "cpus",	    "delays", "functions" };

static const char *const critpath = "critpath";

/* first_cpu and cpus: of the stream. */
static struct host_numbers machines_numbers[2] = { { .label = "a" },
						   { .label = "b", .number = 1 } };

static const struct export_options outputs[] = {
	{ .format = "txt", .tgid = true },
	{ .format = "json" },
	{ .format = "pftrace", .perfetto.compression = PERFETTO_PLAIN },
	{ .format = "dat" },
	{ .format = "pftrace",
	  .perfetto = { .plain_sched = true, .compression = PERFETTO_DEFLATE } },
	{ .format = "pftrace",
	  .perfetto = { .legacy_generic = true, .compression = PERFETTO_ZSTD } },
	{ .format = "html" },
	{ .format = "dat", .perfetto.compression = PERFETTO_ZSTD },
	{ .format = "json", .function_view = FUNCTION_SLICES, .raw_addresses = true },
	{ .format = "traced" },
	{ .format = "txt", .trace_options = "latency-format,raw" },
	{ .format = "json", .json_array = true },
	{ .format = "pftrace", .rotate.bytes = EXPORT_ROTATE_BYTES_MIN },
	{ .format = "json", .rotate.ns = EXPORT_ROTATE_NS_MIN },
	{ .format = "prof" },
	{ .format = "ctf" },
	{ .report = &(const struct report_options){ .names = reports, .count = 6 } },
	{ .report = &(const struct report_options){ .names = reports + 1,
						    .count = 6,
						    .form = REPORT_JSON } },
	{ .report = &(const struct report_options){ .names = &critpath, .count = 1, .task = "1" } },
	{ .format = "json", .numbers = machines_numbers },
	{ .format = "html", .numbers = machines_numbers },
	{ .format = "txt", .numbers = machines_numbers },
	{ .format = "pftrace", .numbers = machines_numbers },
};

static void put_function_format(struct maker *m)
{
	char fields[160];

	snprintf(fields, sizeof(fields),
		 "\tfield:unsigned long ip;\toffset:8;\tsize:%u;\tsigned:0;\n"
		 "\tfield:unsigned long parent_ip;\toffset:%u;\tsize:%u;\tsigned:0;\n",
		 m->word_size, 8 + m->word_size, m->word_size);
	maker_format(m, "ftrace", "function", ID_FUNCTION, fields,
		     "\" %ps <-- %ps\", (void *)REC->ip, (void *)REC->parent_ip");
}

/* A 32-bit machine with Linux 6.16. */
static void put_free_format(struct maker *m)
{
	if (m->word_size == 8) {
		maker_free_format(m);
		return;
	}
	maker_format(m, "sched", "sched_process_free", ID_FREE,
		     "\tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;\n"
		     "\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n",
		     "\"comm=%s pid=%d\", __get_str(comm), REC->pid");
}

static void by_graph(Traced__Capture__Header *h)
{
	h->tracer = (char *)"function_graph";
}

/* The machine's head, the same each time, and the writer that made it. */
static const struct maker *head_of(unsigned machine, struct buf *ret)
{
	static struct maker makers[GRAPH + 4];
	static struct buf heads[GRAPH + 4];
	struct maker *m = &makers[machine];
	size_t len;

	if (!heads[machine].len) {
		maker_init(m, machine & MACHINE_32 ? 4 : 8, machine & MACHINE_BIG, SUBBUF_SIZE);
		if (machine & GRAPH)
			m->header = by_graph;
		maker_head(m);
		if (machine & GRAPH)
			maker_graph_formats(m);
		put_function_format(m);
		put_free_format(m);
		maker_symbols(
			m, m->word_size == 8
				   ? "ffffffff81000000 T first\nffffffff81000100 t last\t[module]\n"
				   : "81000000 T first\n81000100 t last\t[module]\n");
		len = (size_t)m->writer.bytes;
		if (pread_full(m->fd, buf_reserve(&heads[machine], len), len, 0) < 0)
			abort();
		heads[machine].len = len;
	}
	*ret = heads[machine];
	return m;
}

static void put_subbuf(struct maker *m, uint32_t cpu, const uint8_t *data, size_t len)
{
	uint8_t page[SUBBUF_SIZE] = { 0 };

	memcpy(page, data, MIN(len, sizeof(page)));
	buf_append(&m->subbufs, (char *)page, sizeof(page));
	maker_flush(m, cpu, cpu & 64 ? BUFFER_TASKS : BUFFER_MAIN,
		    cpu & 128 ? len % SUBBUF_SIZE : 0);
}

/* Valid records with any content: an id, 16 bits of time, a length, its bytes. */
static void put_records(struct maker *m, uint32_t cpu, const uint8_t *data, size_t len)
{
	static const uint16_t ids[] = { ID_SWITCH,  ID_NUMBER,	    ID_PRINT,
					ID_NEWTASK, ID_RENAME,	    ID_FUNCTION,
					ID_FREE,    ID_GRAPH_ENTRY, ID_GRAPH_EXIT };
	const size_t id_count = ARRAY_SIZE(ids) - (m->header ? 0 : 2); /* GRAPH has the last two */
	const uint32_t room = SUBBUF_SIZE - maker_data_offset(m) - 32;
	uint64_t ts = UINT64_C(100000000000);

	page_begin(m, ts);
	while (len >= 4) {
		uint16_t id = ids[data[0] % id_count];
		size_t n = MIN((size_t)data[3], len - 4);

		ts += (uint64_t)(data[1] | data[2] << 8) * 64;
		if (m->page.len + n > room)
			break;
		maker_event(m, ts, id, data[0] / 16, data + 4, n);
		data += 4 + n;
		len -= 4 + n;
	}
	page_end(m, cpu & 128 ? 1 + len : 0);
	maker_flush(m, cpu, cpu & 64 ? BUFFER_TASKS : BUFFER_MAIN, 0);
}

static void put_pieces(struct maker *m, const uint8_t *data, size_t size)
{
	while (size >= 4) {
		unsigned type = data[0] % PIECE_TYPES;
		uint32_t cpu = data[1];
		size_t len = MIN((size_t)(data[2] | data[3] << 8), size - 4);

		data += 4;
		if (type == PIECE_SUBBUF)
			put_subbuf(m, cpu, data, len);
		else if (type == PIECE_RECORDS)
			put_records(m, cpu, data, len);
		else if (type != CHUNK_SUBBUFS)
			stream_write(&m->writer, (enum chunk_type)type, data, len);
		data += len;
		size -= 4 + len;
	}
}

static int null_file(void)
{
	static int out = -EBADF;

	if (out < 0)
		out = open("/dev/null", O_WRONLY | O_CLOEXEC);
	return out;
}

static int part_file(size_t i)
{
	static int parts[2] = { -EBADF, -EBADF };

	if (parts[i] < 0)
		parts[i] = memfd_create("part", MFD_CLOEXEC);
	if (ftruncate(parts[i], 0) < 0 || lseek(parts[i], 0, SEEK_SET) < 0)
		abort();
	return parts[i];
}

static void check_origin(const struct host_origin *o)
{
	if (strlen(o->label) >= sizeof(o->label) || o->cpus < o->cpus_seen ||
	    (o->tied && o->clock.bound > 61 * NSEC_PER_SEC))
		abort();
}

/* The times of the second machine are moved as its chunk HOST says. */
static void export_joined(int fd, const struct export_options *output)
{
	_cleanup_export_result_ struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	const struct export_format *format = export_format_find(output->format, NULL);
	struct export_part parts[ARRAY_SIZE(machines_numbers)];
	struct host_clock still = { .mult = UINT32_C(1) << 31, .shift = 31, .by_wall = true };
	struct host_origin origin;

	if (host_origin_read(&origin, fd, &err) < 0)
		return;
	check_origin(&origin);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		struct host_numbers *n = &machines_numbers[i];
		struct export_options o = { .format = format->part, .threads = 1 };

		n->cpus = MIN(origin.cpus_seen, HOST_CPUS_MAX / 2);
		n->first_cpu = i ? n->cpus : 0;
		o.numbers = format->host_numbers ? n : NULL;
		o.host = i && origin.tied ? &origin.clock : &still;
		export_result_deinit(&result);
		parts[i] = (struct export_part){ part_file(i), n->label, 1, "a clock", o.host, n };
		if (export_stream(fd, parts[i].fd, &o, &result, &err) < 0)
			return;
	}
	if (export_join(format, parts, ARRAY_SIZE(parts), null_file(), &result, &err) < 0)
		abort();
}

/* With two threads records are lent. */
static void export(int fd, const struct export_options *output, unsigned threads)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_export_result_ struct export_result result;
	struct export_options o = *output;
	int out = null_file();
	uint64_t events = 0;

	o.threads = threads;
	if ((o.report ? export_run(&report_sink_ops, fd, out, &o, &result, &err)
		      : export_stream(fd, out, &o, &result, &err)) < 0)
		return;
	for (size_t i = 0; i < result.ledger_count; i++)
		events += result.ledger[i].events;
	if (events != result.events)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf head;
	struct maker m;

	if (size < 2)
		return 0;
	m = *head_of(data[0] & (MACHINE_32 | MACHINE_BIG | GRAPH), &head);
	m.fd = m.writer.fd = input_file((uint8_t *)head.data, head.len);
	if (lseek(m.fd, 0, SEEK_END) < 0)
		abort();
	if (data[0] & REST_PIECES)
		put_pieces(&m, data + 2, size - 2);
	else if (write_full(m.fd, data + 2, size - 2) < 0)
		return 0;
	if (outputs[data[1] % ARRAY_SIZE(outputs)].numbers)
		export_joined(m.fd, &outputs[data[1] % ARRAY_SIZE(outputs)]);
	else
		export(m.fd, &outputs[data[1] % ARRAY_SIZE(outputs)],
		       data[0] & TWO_THREADS ? 2 : 1);
	buf_deinit(&m.page);
	buf_deinit(&m.subbufs);
	return 0;
}
