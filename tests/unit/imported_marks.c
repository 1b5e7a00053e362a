/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "imported_marks.h"

#include <fcntl.h>
#include <time.h>

#include "base/io.h"
#include "formats/formats.h"
#include "make_stream.h"
#include "marks/trace_file.h"
#include "memory_file.h"

#define S UINT64_C(1000000000)

void read_rich_marks(struct buf *out)
{
	assert_int_equal(read_file_at(AT_FDCWD, TEST_DATA "/perfetto/marks.json", 1 << 20, out), 0);
}

void export_marks(const char *text, size_t len, struct buf *out)
{
	_cleanup_close_ int fd = memory_file("", 0), app = memory_file(text, len);
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
	memory_file_read(fd, out);
}

void import_begin(struct import *i, uint64_t limit)
{
	*i = (struct import){ .fd = memory_file("", 0) };
	assert_int_equal(pf_mark_writer_new(&i->writer, i->fd, limit), 0);
}

void import_add(struct import *i, const struct pf_packet *p)
{
	if (pf_mark_writer_add(i->writer, p, &i->err) < 0)
		fail_msg("%s", i->err.message);
}

void import_close(struct import *i)
{
	if (pf_mark_writer_close(i->writer, &i->count, &i->err) < 0)
		fail_msg("%s", i->err.message);
	i->left_out = pf_mark_writer_left_out(i->writer, &i->why);
	assert_int_equal(i->left_out > 0, i->why != NULL);
}

void import_end(struct import *i)
{
	json_error_t why;

	import_close(i);
	memory_file_read(i->fd, &i->text);
	i->json = json_loadb(i->text.data, i->text.len, JSON_ALLOW_NUL, &why);
	if (!i->json)
		fail_msg("%s at %d: %s", why.text, why.position, i->text.data);
}

void import_deinit(struct import *i)
{
	pf_mark_writer_free(i->writer);
	close_fd(i->fd);
	error_deinit(&i->err);
	buf_deinit(&i->text);
	json_decref(i->json);
}

void import_file(struct import *i, const struct buf *file)
{
	_cleanup_close_ int fd = memory_file(file->data, file->len);
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

void check_readable(const struct import *i)
{
	_cleanup_close_ int fd = memory_file(i->text.data, i->text.len);
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

const char *string_of(const json_t *e, const char *key)
{
	return json_string_value(json_object_get(e, key)) ?: "";
}

int64_t integer_of(const json_t *e, const char *key)
{
	const json_t *v = json_object_get(e, key);

	return json_is_number(v) ? (int64_t)json_number_value(v) : -1;
}

json_t *rows_of(const json_t *file, const char *key)
{
	return json_object_get(file, key);
}
