/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of marks through the Perfetto trace and back; for the tests that include it. */
#pragma once

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "export/export.h"
#include "export/marks/trace_file.h"
#include "import/perfetto/marks.h"
#include "make_stream.h"
#include "util/io.h"

#define S UINT64_C(1000000000)

static inline int file_of(const void *data, size_t len)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, data, len), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static inline void load(int fd, struct buf *out)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_non_null(buf_reserve(out, (size_t)st.st_size + 1));
	assert_int_equal(pread_full(fd, out->data, (size_t)st.st_size, 0), st.st_size);
	out->len = (size_t)st.st_size;
	out->data[out->len] = '\0';
}

/* A file of marks, merged into a recording with a sampler, as a Perfetto trace. */
static inline void export(const char *text, size_t len, struct buf *out)
{
	_cleanup_close_ int fd = memfd_create("out", MFD_CLOEXEC), app = file_of(text, len);
	struct export_merge file = { .fd = app, .name = "app.json", .clock = CLOCK_BOOTTIME };
	struct export_options o = { .format = "pftrace", .merges = &file, .merge_count = 1 };
	Traced__Capture__Sampler sampler = TRACED__CAPTURE__SAMPLER__INIT;
	struct export_result result = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_(maker_deinit) struct maker m;

	maker_init(&m, 8, false, 1024);
	maker_head(&m);
	sampler.event = (char *)"cpu-clock";
	sampler.hz = 997;
	sampler.clock = CLOCK_BOOTTIME;
	assert_int_equal(stream_write_message(&m.writer, CHUNK_SAMPLER, &sampler.base), 0);
	page_begin(&m, 101 * S);
	event_number(&m, 101 * S, 7, 1);
	page_end(&m, 3);
	page_begin(&m, 102 * S);
	event_number(&m, 102 * S, 7, 2);
	page_end(&m, 5);
	maker_flush(&m, 0, BUFFER_MAIN, 0);
	maker_end(&m);
	if (export_stream(m.fd, fd, &o, &result, &err) < 0)
		fail_msg("%s", err.message);
	export_result_deinit(&result);
	load(fd, out);
}

struct import {
	struct pf_mark_writer *writer;
	int fd;
	struct error err;
	uint64_t count, left_out;
	const char *why;
	struct buf text;
	json_t *json;
};

static void import_begin(struct import *i, uint64_t limit)
{
	*i = (struct import){ .fd = memfd_create("marks", MFD_CLOEXEC) };
	assert_true(i->fd >= 0);
	assert_int_equal(pf_mark_writer_new(&i->writer, i->fd, limit), 0);
}

static inline void import_add(struct import *i, const struct pf_packet *p)
{
	if (pf_mark_writer_add(i->writer, p, &i->err) < 0)
		fail_msg("%s", i->err.message);
}

static inline void import_close(struct import *i)
{
	if (pf_mark_writer_close(i->writer, &i->count, &i->err) < 0)
		fail_msg("%s", i->err.message);
	i->left_out = pf_mark_writer_left_out(i->writer, &i->why);
	assert_int_equal(i->left_out > 0, i->why != NULL);
}

static inline void import_end(struct import *i)
{
	json_error_t why;

	import_close(i);
	load(i->fd, &i->text);
	i->json = json_loadb(i->text.data, i->text.len, JSON_ALLOW_NUL, &why);
	if (!i->json)
		fail_msg("%s at %d: %s", why.text, why.position, i->text.data);
}

static void import_deinit(struct import *i)
{
	pf_mark_writer_free(i->writer);
	close_fd(i->fd);
	error_deinit(&i->err);
	buf_deinit(&i->text);
	json_decref(i->json);
}
#define _cleanup_import_ _cleanup_(import_deinit)

/* All of a file's packets. */
static inline void import_file(struct import *i, const struct buf *file)
{
	_cleanup_close_ int fd = file_of(file->data, file->len);
	_cleanup_(pf_packets_deinit) struct pf_packets packets;
	struct pf_packet p;
	int r;

	import_begin(i, 0);
	assert_int_equal(pf_packets_init(&packets, fd), 0);
	while ((r = pf_packets_next(&packets, &p, &i->err)) > 0)
		import_add(i, &p);
	assert_int_equal(r, 0);
	assert_false(packets.cut);
	import_end(i);
}

/* What was written is a file of the Trace Event Format, of which all is taken. */
static inline void check_readable(const struct import *i)
{
	_cleanup_close_ int fd = file_of(i->text.data, i->text.len);
	_cleanup_error_ struct error err = ERROR_INIT;
	struct scratch scratch = { .fd = -EBADF };
	struct trace_file file;

	if (trace_file_read(&file, fd, 0, &scratch, &err) < 0)
		fail_msg("%s", err.message);
	if (file.left_out)
		fail_msg("%s", file.why_left_out);
	assert_false(file.cut);
	assert_int_equal(file.count, i->count);
	trace_file_deinit(&file);
}

static inline const char *string_of(const json_t *e, const char *key)
{
	return json_string_value(json_object_get(e, key)) ?: "";
}

static inline int64_t integer_of(const json_t *e, const char *key)
{
	const json_t *v = json_object_get(e, key);

	return json_is_number(v) ? (int64_t)json_number_value(v) : -1;
}

static inline json_t *rows_of(const json_t *file, const char *key)
{
	return json_object_get(file, key);
}

/* Times come in order, so that none of them has to be looked for elsewhere. */
static const char rich[] =
	"{\"stackFrames\":{\"1\":{\"name\":\"main\",\"category\":\"app\"},"
	"\"2\":{\"name\":\"work\",\"category\":\"libwork.so\",\"parent\":\"1\"},"
	"\"3\":{\"name\":\"work\",\"category\":\"libwork.so\",\"parent\":\"2\"},"
	"\"4\":{\"name\":\"bare\",\"parent\":\"1\"}},"
	"\"samples\":["
	"{\"cpu\":0,\"tid\":42,\"ts\":101000000.001,\"name\":\"x\",\"sf\":\"3\",\"weight\":1},"
	"{\"cpu\":3,\"tid\":42,\"ts\":101000000.002,\"name\":\"x\",\"sf\":\"4\",\"weight\":1},"
	"{\"cpu\":1,\"tid\":43,\"ts\":101000000.003,\"name\":\"x\",\"sf\":\"3\",\"weight\":1},"
	"{\"cpu\":1,\"tid\":43,\"ts\":101000000.004,\"name\":\"x\",\"weight\":1}],"
	"\"traceEvents\":["
	"{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":42,\"tid\":42,\"args\":{\"name\":"
	"\"B\\u00e4r \\\"1\\\"\"}},"
	"{\"name\":\"process_labels\",\"ph\":\"M\",\"pid\":42,\"tid\":42,\"args\":{\"labels\":\"a,"
	"b\"}},"
	"{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":42,\"tid\":42,\"args\":{\"sort_"
	"index\":-7}},"
	"{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":42,\"tid\":43,\"args\":{\"name\":\"w 1\"}},"
	"{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":42,\"tid\":43,\"args\":{\"sort_"
	"index\":5}},"
	"{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":77,\"tid\":77,\"args\":{\"name\":\"never "
	"marks\"}},"
	"{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"toy\"}},"
	"{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":9,\"args\":{\"name\":\"toy "
	"9\"}},"
	/* Slices: nested, in a moment, with all kinds of arguments. */
	"{\"name\":\"outer\",\"cat\":\"a\",\"ph\":\"B\",\"ts\":101000000.001,\"pid\":42,\"tid\":42,"
	"\"args\":{\"i\":-5,\"big\":9223372036854775807,\"d\":0.1,"
	"\"t\":true,\"f\":false,\"s\":\"\\u0000\\u00e4\\\"\\\\\\ud83d\\ude00\\u2028\",\"e\":\"\","
	"\"n\":null,\"l\":[1,[2,[3,{\"x\":[4]}]],\"five\"],\"o\":{\"o\":{\"o\":{\"k\":1}}}}},"
	"{\"name\":\"inner\",\"cat\":\"a,b c\",\"ph\":\"B\",\"ts\":101000000.002,\"pid\":42,"
	"\"tid\":42,\"sf\":\"3\",\"tts\":5.001,\"ticount\":7},"
	"{\"ph\":\"E\",\"ts\":101000000.003,\"pid\":42,\"tid\":42,\"sf\":\"4\",\"tts\":6.002,"
	"\"ticount\":9,\"args\":{\"at\":\"end\"}},"
	"{\"name\":\"leaf\",\"ph\":\"B\",\"ts\":101000000.004,\"pid\":42,\"tid\":42},"
	"{\"ph\":\"E\",\"ts\":101000000.005,\"pid\":42,\"tid\":42},"
	"{\"name\":\"leaf\",\"ph\":\"B\",\"ts\":101000000.005,\"pid\":42,\"tid\":42},"
	"{\"ph\":\"E\",\"ts\":101000000.006,\"pid\":42,\"tid\":42,\"args\":{\"left\":1}},"
	"{\"name\":\"moment\",\"cat\":\"a\",\"ph\":\"X\",\"ts\":101000000.006,\"dur\":0,\"pid\":42,"
	"\"tid\":42},"
	"{\"ph\":\"E\",\"ts\":101000000.007,\"pid\":42,\"tid\":42},"
	/* Complete ones, which end at one time. */
	"{\"name\":\"X1\",\"cat\":\"a\",\"ph\":\"X\",\"ts\":101000001,\"dur\":10,\"tts\":1,"
	"\"tdur\":3,\"ticount\":10,\"tidelta\":100,\"pid\":42,\"tid\":43,\"sf\":\"1\","
	"\"esf\":\"3\"},"
	"{\"name\":\"X2\",\"cat\":\"a\",\"ph\":\"X\",\"ts\":101000002,\"dur\":9,\"tts\":2,"
	"\"tdur\":1,\"pid\":42,\"tid\":43,\"esf\":\"2\"},"
	/* Instants. */
	"{\"name\":\"of a thread\",\"ph\":\"i\",\"ts\":101000020,\"pid\":42,\"tid\":43,"
	"\"s\":\"t\"},"
	"{\"name\":\"of a process\",\"ph\":\"i\",\"ts\":101000021,\"pid\":42,\"tid\":43,"
	"\"s\":\"p\"},"
	"{\"name\":\"of all\",\"ph\":\"i\",\"ts\":101000022,\"pid\":42,\"tid\":43,\"s\":\"g\","
	"\"cname\":\"good\"},"
	/* Counters. */
	"{\"name\":\"heap [bytes]\",\"ph\":\"C\",\"ts\":101000030,\"pid\":42,\"args\":{\"value\":"
	"-9223372036854775807}},"
	"{\"name\":\"lag [ns]\",\"ph\":\"C\",\"ts\":101000030,\"pid\":42,\"args\":{\"value\":7}},"
	"{\"name\":\"load [%]\",\"ph\":\"C\",\"ts\":101000030,\"pid\":42,\"args\":{\"value\":0.1}},"
	"{\"name\":\"pets\",\"ph\":\"C\",\"ts\":101000030,\"pid\":42,\"args\":{\"cats\":1,"
	"\"dogs\":2}},"
	"{\"name\":\"pool\",\"id\":23,\"ph\":\"C\",\"ts\":101000030,\"pid\":42,\"args\":{\"free\":"
	"3}},"
	/* Async ones: of one process, of all, two of one id in categories of their own. */
	"{\"name\":\"req\",\"cat\":\"n\",\"id\":\"0x1\",\"ph\":\"b\",\"ts\":101000040,\"pid\":42,"
	"\"tid\":42,\"args\":{\"u\":1}},"
	"{\"name\":\"part\",\"cat\":\"n\",\"id\":\"0x1\",\"ph\":\"b\",\"ts\":101000041,\"pid\":42,"
	"\"tid\":42},"
	"{\"name\":\"hit\",\"cat\":\"n\",\"id\":\"0x1\",\"ph\":\"n\",\"ts\":101000042,\"pid\":42,"
	"\"tid\":42},"
	"{\"name\":\"part\",\"cat\":\"n\",\"id\":\"0x1\",\"ph\":\"e\",\"ts\":101000043,\"pid\":42,"
	"\"tid\":42},"
	"{\"name\":\"req\",\"cat\":\"n\",\"id\":\"0x1\",\"ph\":\"e\",\"ts\":101000044,\"pid\":42,"
	"\"tid\":42,\"args\":{\"code\":200}},"
	"{\"name\":\"req\",\"cat\":\"m\",\"id\":\"0x1\",\"ph\":\"b\",\"ts\":101000045,\"pid\":42,"
	"\"tid\":42},"
	"{\"name\":\"all\",\"cat\":\"g\",\"id2\":{\"global\":\"0x1\"},\"ph\":\"b\",\"ts\":"
	"101000046,\"pid\":42,\"tid\":42},"
	"{\"name\":\"all\",\"cat\":\"g\",\"id2\":{\"global\":\"0x1\"},\"ph\":\"e\",\"ts\":"
	"101000047,\"pid\":42,\"tid\":42},"
	/* Flows: bound to what comes next, and to what is there. */
	"{\"name\":\"P\",\"ph\":\"X\",\"ts\":101000050,\"dur\":5,\"pid\":42,\"tid\":42},"
	"{\"name\":\"flow\",\"cat\":\"f\",\"id\":1,\"ph\":\"s\",\"ts\":101000051,\"pid\":42,"
	"\"tid\":42},"
	"{\"name\":\"flow\",\"cat\":\"f\",\"id\":1,\"ph\":\"t\",\"ts\":101000052,\"pid\":42,"
	"\"tid\":43},"
	"{\"name\":\"flow\",\"cat\":\"f\",\"id\":1,\"ph\":\"f\",\"ts\":101000060,\"pid\":42,"
	"\"tid\":43},"
	"{\"name\":\"Q\",\"ph\":\"X\",\"ts\":101000061,\"dur\":5,\"pid\":42,\"tid\":43},"
	"{\"name\":\"flow2\",\"cat\":\"f\",\"id\":2,\"ph\":\"s\",\"ts\":101000062,\"pid\":42,"
	"\"tid\":43},"
	"{\"name\":\"flow2\",\"cat\":\"f\",\"id\":2,\"ph\":\"f\",\"bp\":\"e\",\"ts\":101000063,"
	"\"pid\":42,\"tid\":42,\"args\":{\"how\":\"enclosed\"}},"
	/* Objects, contexts, dumps. */
	"{\"name\":\"Obj\",\"cat\":\"o\",\"id\":\"0x7\",\"ph\":\"N\",\"ts\":101000070,\"pid\":42,"
	"\"tid\":42},"
	"{\"name\":\"Obj\",\"cat\":\"o\",\"id\":\"0x7\",\"ph\":\"O\",\"ts\":101000071,\"pid\":42,"
	"\"tid\":42,\"args\":{\"snapshot\":{\"w\":1}}},"
	"{\"name\":\"Obj\",\"cat\":\"o\",\"id\":\"0x7\",\"ph\":\"D\",\"ts\":101000072,\"pid\":42,"
	"\"tid\":42},"
	"{\"name\":\"ctx\",\"cat\":\"c\",\"id\":\"0x99\",\"ph\":\"(\",\"ts\":101000080,\"pid\":42,"
	"\"tid\":43,\"args\":{\"id\":\"its own\"}},"
	"{\"name\":\"ctx\",\"cat\":\"c\",\"id\":\"0x99\",\"ph\":\")\",\"ts\":101000081,\"pid\":42,"
	"\"tid\":43},"
	"{\"name\":\"dump\",\"cat\":\"d\",\"ph\":\"V\",\"ts\":101000082,\"args\":{\"dumps\":{"
	"\"x\":1}}},"
	"{\"name\":\"dump\",\"cat\":\"d\",\"ph\":\"v\",\"ts\":101000083,\"pid\":42,\"args\":{"
	"\"dumps\":{\"x\":1}}},"
	/* Of numbers that readers do not take. */
	"{\"name\":\"toy slice\",\"ph\":\"X\",\"ts\":101000090,\"dur\":1,\"pid\":0,\"tid\":9},"
	"{\"name\":\"toy slice\",\"ph\":\"X\",\"ts\":101000092,\"dur\":1,\"pid\":0,\"tid\":8},"
	"{\"name\":\"toy slice\",\"ph\":\"X\",\"ts\":101000094,\"dur\":1,\"pid\":0,\"tid\":0},"
	"{\"name\":\"minus\",\"ph\":\"X\",\"ts\":101000096,\"dur\":1,\"pid\":-3,\"tid\":-4}"
	"]}";
