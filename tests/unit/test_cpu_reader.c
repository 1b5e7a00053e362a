/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading whole sub-buffers from files instead of trace_pipe_raw. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/capture/rings/cpu_reader.h"
#include "daemon/capture/rings/ring.h"
#include "fake_root.h"

static const char page64[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
			     "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
			     "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
			     "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
struct fixture {
	struct fake_root root;
	struct subbuf_layout layout;
	struct staging staging;
	int dir;
};

static void write_pages(struct fixture *f, unsigned pages)
{
	uint8_t *data = calloc(pages + 1, f->layout.size);

	assert_non_null(data);
	for (unsigned i = 0; i < pages; i++) {
		uint8_t *page = data + (size_t)i * f->layout.size;
		/* The kernel still fills the last one. */
		uint64_t ts = i, commit = i + 1 == pages ? 100 : 4080;

		memcpy(page, &ts, 8);
		memcpy(page + 8, &commit, 8);
	}
	fake_data(&f->root, "per_cpu/cpu0/trace_pipe_raw", data, (size_t)pages * f->layout.size);
	free(data);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_root_init(&f->root);
	assert_int_equal(subbuf_layout_parse(&f->layout, page64, strlen(page64), 0), 0);
	assert_int_equal(staging_init(&f->staging, f->layout.size), 0);
	f->dir = open(f->root.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close_fd(f->dir);
	staging_deinit(&f->staging);
	fake_root_deinit(&f->root);
	free(f);
	return 0;
}

static void take_all(struct fixture *f, enum capture_reader kind, unsigned max, unsigned pages)
{
	struct cpu_reader r;
	struct batch b;
	uint64_t next = 0;

	write_pages(f, pages);
	assert_int_equal(cpu_reader_open(&r, f->dir, 0, kind, &f->layout, &f->staging), 0);
	assert_int_equal(r.kind, kind);
	do {
		assert_int_equal(cpu_reader_take(&r, &f->staging, max, true, &b), 0);
		assert_true(b.subbufs <= max);
		assert_int_equal(b.skip, 0);
		for (unsigned i = 0; i < b.subbufs; i++, next++)
			assert_memory_equal((const uint8_t *)b.data + i * f->layout.size, &next, 8);
	} while (b.more);
	assert_int_equal(next, pages);
	assert_int_equal(r.bytes, (uint64_t)pages * f->layout.size);
	cpu_reader_close(&r);
}

static void splice_takes_all_in_order(void **state)
{
	take_all(*state, CAPTURE_READER_SPLICE, STAGING_SUBBUFS, 150);
	take_all(*state, CAPTURE_READER_SPLICE, 7, 150);
	take_all(*state, CAPTURE_READER_SPLICE, 7, 0);
}

static void read_takes_all_in_order(void **state)
{
	take_all(*state, CAPTURE_READER_READ, STAGING_SUBBUFS, 150);
	take_all(*state, CAPTURE_READER_READ, 1, 3);
}

/* A sub-buffer with little data is the one that the kernel fills. */
static void read_stops_at_the_page_being_filled(void **state)
{
	struct fixture *f = *state;
	struct cpu_reader r;
	struct batch b;

	write_pages(f, 4);
	assert_int_equal(
		cpu_reader_open(&r, f->dir, 0, CAPTURE_READER_READ, &f->layout, &f->staging), 0);
	assert_int_equal(cpu_reader_take(&r, &f->staging, 64, false, &b), 0);
	assert_int_equal(b.subbufs, 4);
	assert_false(b.more);
	cpu_reader_close(&r);
}

static void automatic_choice_falls_back(void **state)
{
	struct fixture *f = *state;
	struct cpu_reader r;

	write_pages(f, 1);
	/* A file that is no ring: its "meta page" is invalid. */
	assert_int_equal(
		cpu_reader_open(&r, f->dir, 0, CAPTURE_READER_MMAP, &f->layout, &f->staging),
		-EBADMSG);
	assert_int_equal(r.fd, -EBADF);
	assert_int_equal(
		cpu_reader_open(&r, f->dir, 0, CAPTURE_READER_AUTO, &f->layout, &f->staging), 0);
	assert_int_equal(r.kind, CAPTURE_READER_SPLICE);
	cpu_reader_close(&r);
	assert_int_equal(
		cpu_reader_open(&r, f->dir, 9, CAPTURE_READER_AUTO, &f->layout, &f->staging),
		-ENOENT);
}

static void torn_page_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct cpu_reader r;
	struct batch b;

	fake_file(&f->root, "per_cpu/cpu0/trace_pipe_raw", "half a page");
	assert_int_equal(
		cpu_reader_open(&r, f->dir, 0, CAPTURE_READER_READ, &f->layout, &f->staging), 0);
	assert_int_equal(cpu_reader_take(&r, &f->staging, 64, true, &b), -EIO);
	cpu_reader_close(&r);
	assert_int_equal(
		cpu_reader_open(&r, f->dir, 0, CAPTURE_READER_SPLICE, &f->layout, &f->staging), 0);
	assert_int_equal(cpu_reader_take(&r, &f->staging, 64, true, &b), -EIO);
	cpu_reader_close(&r);
}

static void room_for_smaller_pages_is_refused(void **state)
{
	struct fixture *f = *state;
	struct staging small;
	struct cpu_reader r;

	write_pages(f, 1);
	assert_int_equal(staging_init(&small, f->layout.size / 2), 0);
	assert_int_equal(cpu_reader_open(&r, f->dir, 0, CAPTURE_READER_READ, &f->layout, &small),
			 -ENOBUFS);
	assert_int_equal(r.fd, -EBADF);
	staging_deinit(&small);
}

static uint64_t first_word(const struct batch *b)
{
	uint64_t word;

	memcpy(&word, b->data, sizeof(word));
	return word;
}

/* The pipe gives less than splice put in, because it is another pipe here. */
static void what_is_left_in_the_pipe_reaches_no_other_cpu(struct fixture *f, size_t given)
{
	_cleanup_close_ int kept = -EBADF, feeder = -EBADF;
	struct cpu_reader first, second;
	uint8_t page[4096] = { 0 };
	struct batch b;
	int p[2];

	write_pages(f, 5);
	page[0] = 77;
	page[8] = 100;
	fake_data(&f->root, "per_cpu/cpu1/trace_pipe_raw", page, sizeof(page));
	assert_int_equal(
		cpu_reader_open(&first, f->dir, 0, CAPTURE_READER_SPLICE, &f->layout, &f->staging),
		0);
	assert_int_equal(
		cpu_reader_open(&second, f->dir, 1, CAPTURE_READER_SPLICE, &f->layout, &f->staging),
		0);

	assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	feeder = p[1];
	assert_int_equal(write_full(feeder, page, given), 0);
	kept = f->staging.pipe[0];
	f->staging.pipe[0] = p[0];
	assert_int_equal(cpu_reader_take(&first, &f->staging, 64, false, &b), -EIO);
	assert_int_equal(b.subbufs, 0);

	assert_int_equal(cpu_reader_take(&second, &f->staging, 64, false, &b), 0);
	assert_int_equal(b.subbufs, 1);
	assert_int_equal(first_word(&b), 77);
	cpu_reader_close(&first);
	cpu_reader_close(&second);
}

static void pipe_that_gives_nothing(void **state)
{
	what_is_left_in_the_pipe_reaches_no_other_cpu(*state, 0);
}

static void pipe_that_gives_a_part(void **state)
{
	what_is_left_in_the_pipe_reaches_no_other_cpu(*state, 1000);
}

static void without_a_pipe_splice_reads(void **state)
{
	struct fixture *f = *state;
	struct cpu_reader r;
	struct batch b;

	write_pages(f, 3);
	assert_int_equal(
		cpu_reader_open(&r, f->dir, 0, CAPTURE_READER_SPLICE, &f->layout, &f->staging), 0);
	f->staging.pipe[0] = close_fd(f->staging.pipe[0]);
	f->staging.pipe[1] = close_fd(f->staging.pipe[1]);
	assert_int_equal(cpu_reader_take(&r, &f->staging, 64, true, &b), 0);
	assert_int_equal(b.subbufs, 3);
	cpu_reader_close(&r);
}

/* Replaces the kernel's ioctl for the ring that is a file: META names the reader page. */
int ioctl(int fd _unused_, unsigned long request _unused_, ...)
{
	return 0;
}

/* Layout of include/uapi/linux/trace_mmap.h: sizes, then the reader page. */
static void write_mapped_ring(struct fixture *f, uint32_t subbufs, uint32_t id, uint32_t read)
{
	uint32_t size = f->layout.size, meta[] = { size, 80, size, subbufs, 0, 0, id, read };
	uint8_t *data = calloc(subbufs + 1, size);

	assert_non_null(data);
	memcpy(data, meta, sizeof(meta));
	for (uint32_t i = 0; i < subbufs; i++) {
		data[(i + 1) * size] = (uint8_t)i;
		data[(i + 1) * size + 8] = 100;
	}
	fake_data(&f->root, "per_cpu/cpu0/trace_pipe_raw", data, (size_t)(subbufs + 1) * size);
	free(data);
}

static int take_mapped(struct fixture *f, uint32_t id, struct batch *b)
{
	struct cpu_reader r;
	uint32_t reader[] = { id, 100 };
	int code, fd;

	write_mapped_ring(f, 2, 0, 0);
	code = cpu_reader_open(&r, f->dir, 0, CAPTURE_READER_MMAP, &f->layout, &f->staging);
	assert_int_equal(code, 0);
	fd = open(fake_path(&f->root, "per_cpu/cpu0/trace_pipe_raw"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, reader, sizeof(reader), 24), sizeof(reader));
	close_fd(fd);
	code = cpu_reader_take(&r, &f->staging, 64, true, b);
	cpu_reader_close(&r);
	return code;
}

static void reader_page_lies_within_the_mapping(void **state)
{
	struct fixture *f = *state;
	struct batch b;

	assert_int_equal(take_mapped(f, 1, &b), 0);
	assert_int_equal(b.subbufs, 1);
	assert_int_equal(first_word(&b), 1);
	assert_int_equal(take_mapped(f, 2, &b), -EBADMSG);
	assert_int_equal(take_mapped(f, UINT32_MAX, &b), -EBADMSG);
}

static void counts_are_found_by_whole_names(void **state _unused_)
{
	struct cpu_counts c;

	assert_int_equal(
		cpu_counts_parse(
			&c, "entries: 12\noverrun: 3\ncommit overrun: 4\n"
			    "bytes: 1000\noldest event ts:     1.000002\nnow ts:    23.045678\n"
			    "dropped events: 5\nread events: 6\n"),
		0);
	assert_int_equal(c.entries, 12);
	assert_int_equal(c.overrun, 3);
	assert_int_equal(c.commit_overrun, 4);
	assert_int_equal(c.bytes, 1000);
	assert_int_equal(c.dropped, 5);
	assert_int_equal(c.read, 6);
	assert_int_equal(c.oldest_ns, 1000002000);
	assert_int_equal(c.now_ns, 23045678000);
	assert_int_equal(cpu_counts_parse(&c, "entries: 12\n"), -EBADMSG);
	assert_int_equal(cpu_counts_parse(&c, ""), -EBADMSG);
}

static void offline_cpus_have_no_reader(void **state)
{
	struct fixture *f = *state;
	struct ring ring;

	write_pages(f, 2);
	fake_data(&f->root, "per_cpu/cpu1/trace_pipe_raw", "", 0);
	fake_data(&f->root, "per_cpu/cpu2/trace_pipe_raw", "", 0);
	fake_file(&f->root, "sys/devices/system/cpu/online", "0,2\n");
	assert_int_equal(ring_open(&ring, BUFFER_MAIN, dup(f->dir), fake_path(&f->root, "sys"),
				   NULL, CAPTURE_READER_SPLICE, &f->layout, &f->staging, NULL),
			 0);
	assert_int_equal(ring.cpu_count, 3);
	assert_true(ring.cpus[0].online && ring.cpus[0].reader.fd >= 0);
	assert_true(!ring.cpus[1].online && ring.cpus[1].reader.fd < 0);
	assert_true(ring.cpus[2].online && ring.cpus[2].reader.fd >= 0);
	/* A CPU goes online. */
	fake_file(&f->root, "sys/devices/system/cpu/online", "0-2\n");
	assert_true(ring_refresh(&ring, &f->staging));
	assert_true(ring.cpus[1].online && ring.cpus[1].reader.fd >= 0);
	/* It goes offline: its reader stays, for what its ring still holds. */
	fake_file(&f->root, "sys/devices/system/cpu/online", "0\n");
	assert_false(ring_refresh(&ring, &f->staging));
	ring_read_online(&ring);
	assert_true(!ring.cpus[1].online && ring.cpus[1].reader.fd >= 0);
	ring_close(&ring);
}

/* A kernel before 6.10: its files can't be mapped. */
static void rings_that_cannot_be_mapped(void **state)
{
	struct fixture *f = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct ring ring;

	fake_dir(&f->root, "per_cpu/cpu0");
	assert_int_equal(mkfifo(fake_path(&f->root, "per_cpu/cpu0/trace_pipe_raw"), 0600), 0);
	assert_int_equal(ring_open(&ring, BUFFER_MAIN, dup(f->dir), f->root.path, NULL,
				   CAPTURE_READER_MMAP, &f->layout, &f->staging, &err),
			 -EOPNOTSUPP);
	assert_string_equal(err.hint, "boot Linux 6.10 or newer");
	ring_close(&ring);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_found_by_whole_names),
		TEST(splice_takes_all_in_order),
		TEST(read_takes_all_in_order),
		TEST(read_stops_at_the_page_being_filled),
		TEST(automatic_choice_falls_back),
		TEST(torn_page_is_an_error),
		TEST(room_for_smaller_pages_is_refused),
		TEST(pipe_that_gives_nothing),
		TEST(pipe_that_gives_a_part),
		TEST(without_a_pipe_splice_reads),
		TEST(reader_page_lies_within_the_mapping),
		TEST(offline_cpus_have_no_reader),
		TEST(rings_that_cannot_be_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
