/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <xxhash.h>

#include "base/io.h"
#include "memory_file.h"
#include "stream/chunk.h"
#include "stream/reader.h"
#include "stream/writer.h"

static struct chunk next(struct stream_reader *r)
{
	struct chunk c;

	assert_int_equal(stream_reader_next(r, &c, NULL), 1);
	return c;
}

static void chunks_come_back(void **state _unused_)
{
	_cleanup_close_ int fd = memory_file("", 0);
	_cleanup_buf_ struct buf b = BUF_INIT;
	_cleanup_free_ char *text = calloc(1, 100000);
	struct stream_writer w;
	struct stream_reader r;
	struct chunk c;
	struct iovec pages[2] = { { (char[16]){ "first page" }, 16 },
				  { (char[16]){ "second" }, 16 } };

	assert_non_null(text);
	assert_int_equal(stream_writer_init(&w, fd, 0), 0);
	assert_int_equal(stream_write(&w, CHUNK_PRINTK, "abc", 3), 0);
	assert_int_equal(stream_write_packed(&w, CHUNK_KALLSYMS, text, 100000), 0);
	assert_int_equal(stream_write_packed(&w, CHUNK_ENUMS, "X 1\n", 4), 0);
	assert_int_equal(stream_write_subbufs(&w, 3, BUFFER_TASKS, 8, pages, 2), 0);
	assert_int_equal(stream_write(&w, CHUNK_END, NULL, 0), 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), w.bytes);
	assert_true(w.bytes < 1000);

	assert_int_equal(stream_reader_init(&r, fd, NULL), 0);
	c = next(&r);
	assert_int_equal(c.type, CHUNK_PRINTK);
	assert_int_equal(stream_reader_load(&r, &c, &b, NULL), 0);
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, "abc", 3);
	c = next(&r);
	assert_int_equal(c.type, CHUNK_KALLSYMS);
	assert_true(c.flags & CHUNK_ZSTD);
	assert_int_equal(stream_reader_load(&r, &c, &b, NULL), 0);
	assert_int_equal(b.len, 100000);
	assert_memory_equal(b.data, text, 100000);
	assert_int_equal(stream_reader_load_max(&r, &c, 100000, &b, NULL), 0);
	assert_int_equal(stream_reader_load_max(&r, &c, 99999, &b, NULL), -EFBIG);
	assert_int_equal(stream_reader_load_max(&r, &c, c.length - 1, &b, NULL), -EFBIG);
	assert_int_equal(stream_reader_load_part(&r, &c, 0, 1, &b, NULL), -EINVAL);
	c = next(&r);
	assert_int_equal(c.flags, 0);
	c = next(&r);
	assert_int_equal(c.type, CHUNK_SUBBUFS);
	assert_int_equal(c.cpu, 3);
	assert_int_equal(c.length, sizeof(struct subbufs_header) + 32);
	assert_int_equal(stream_reader_load(&r, &c, &b, NULL), 0);
	assert_memory_equal(b.data, ((uint32_t[]){ htole32(BUFFER_TASKS), htole32(8) }), 8);
	assert_memory_equal(b.data + 8, "first page", 10);
	assert_memory_equal(b.data + 24, "second", 6);
	assert_int_equal(stream_reader_verify(&r, &c, &b, NULL), 0);
	assert_int_equal(stream_reader_load_part(&r, &c, 24, 6, &b, NULL), 0);
	assert_memory_equal(b.data, "second", 6);
	assert_int_equal(stream_reader_load_part(&r, &c, 39, 2, &b, NULL), -EBADMSG);
	c = next(&r);
	assert_int_equal(c.type, CHUNK_END);
	assert_int_equal(stream_reader_load(&r, &c, &b, NULL), 0);
	assert_int_equal(b.len, 0);
	assert_int_equal(stream_reader_next(&r, &c, NULL), 0);
}

static void assert_part(const struct stream_reader *r, const struct chunk *c, uint32_t from,
			uint32_t len, const char *is)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	buf_puts(&b, "of another");
	assert_int_equal(stream_reader_load_part(r, c, from, len, &b, NULL), 0);
	assert_int_equal(b.len, len);
	assert_memory_equal(b.data, is, len);
}

/* A reference to some bytes of the last chunk reads exactly these, and none beyond. */
static void a_part_is_its_chunks(void **state _unused_)
{
	static const char *const payloads[] = { "the first one's bytes", "of the second", "abc",
						"" };
	_cleanup_close_ int fd = memory_file("", 0);
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct chunk c[ARRAY_SIZE(payloads)];
	struct stream_writer w;
	struct stream_reader r;

	assert_int_equal(stream_writer_init(&w, fd, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(payloads); i++)
		assert_int_equal(stream_write(&w, CHUNK_PRINTK, payloads[i], strlen(payloads[i])),
				 0);
	assert_int_equal(stream_reader_init(&r, fd, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(payloads); i++) {
		c[i] = next(&r);
		for (size_t k = 0; k <= i; k++) {
			uint32_t len = (uint32_t)strlen(payloads[k]);

			for (uint32_t n = 0; n <= len; n++)
				assert_part(&r, &c[k], len - n, n, payloads[k] + len - n);
			for (uint32_t n = 0; n <= len; n++)
				assert_part(&r, &c[k], 0, n, payloads[k]);
			assert_int_equal(stream_reader_load_part(&r, &c[k], 0, len + 1, &b, NULL),
					 -EBADMSG);
		}
	}
}

/* The format's documentation has this example, from which another reader was written. */
static void bytes_are_as_documented(void **state _unused_)
{
	static const uint8_t expect[] = {
		0x89, 't',  'r',  'a',	'c',  'e',  'd',  '\n', 'C',  'H',  'N',  'K',
		0x05, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	};
	_cleanup_close_ int fd = memory_file("", 0);
	struct stream_writer w;
	uint8_t got[40];

	assert_int_equal(stream_writer_init(&w, fd, 0), 0);
	assert_int_equal(stream_write(&w, CHUNK_PRINTK, "abc", 3), 0);
	assert_int_equal(w.bytes, sizeof(got));
	assert_int_equal(pread(fd, got, sizeof(got), 0), sizeof(got));
	assert_memory_equal(got, expect, sizeof(expect));
	/* The output of `xxhsum -H3`. */
	assert_memory_equal(got + 24, "\xa7\xc9\x2d\x97\x1a\xaf\x01\x6b", 8);
	assert_memory_equal(got + 32, "abc\0\0\0\0\0", 8);
}

static void a_cut_stream_ends_at_its_last_whole_chunk(void **state _unused_)
{
	_cleanup_close_ int fd = memory_file("", 0);
	_cleanup_error_ struct error err = ERROR_INIT;
	struct stream_writer w;
	struct stream_reader r;
	uint64_t whole;
	struct chunk c;

	assert_int_equal(stream_writer_init(&w, fd, 0), 0);
	assert_int_equal(stream_write(&w, CHUNK_PRINTK, "abc", 3), 0);
	whole = w.bytes;
	assert_int_equal(stream_write(&w, CHUNK_PRINTK, "0123456789", 10), 0);
	for (uint64_t size = w.bytes - 1; size > whole; size--) {
		assert_int_equal(ftruncate(fd, (off_t)size), 0);
		assert_int_equal(stream_reader_init(&r, fd, NULL), 0);
		next(&r);
		assert_int_equal(stream_reader_next(&r, &c, &err), -ENODATA);
		assert_int_equal(r.offset, whole);
		assert_non_null(err.message);
	}
	/* Zeros after a power loss are no chunk. */
	assert_int_equal(ftruncate(fd, (off_t)whole), 0);
	assert_int_equal(ftruncate(fd, (off_t)whole + 4096), 0);
	assert_int_equal(stream_reader_init(&r, fd, NULL), 0);
	next(&r);
	assert_int_equal(stream_reader_next(&r, &c, NULL), -ENODATA);
	assert_int_equal(r.offset, whole);
	/* Data that is added after the reader opened the stream is left to the next reader. */
	assert_int_equal(ftruncate(fd, (off_t)whole), 0);
	assert_int_equal(stream_reader_init(&r, fd, NULL), 0);
	lseek(fd, 0, SEEK_END);
	assert_int_equal(stream_write(&w, CHUNK_PRINTK, "x", 1), 0);
	next(&r);
	assert_int_equal(stream_reader_next(&r, &c, NULL), 0);
}

static void every_flipped_byte_is_noticed(void **state _unused_)
{
	_cleanup_close_ int fd = memory_file("", 0);
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct stream_writer w;
	struct stream_reader r;
	struct chunk c;

	assert_int_equal(stream_writer_init(&w, fd, 0), 0);
	assert_int_equal(stream_write(&w, CHUNK_PRINTK, "01234567", 8), 0);
	for (off_t at = 0; at < (off_t)w.bytes; at++) {
		uint8_t was, is;
		int rc;

		assert_int_equal(pread(fd, &was, 1, at), 1);
		is = was ^ 0x41;
		assert_int_equal(pwrite(fd, &is, 1, at), 1);
		rc = stream_reader_init(&r, fd, NULL);
		if (rc == 0)
			rc = stream_reader_next(&r, &c, NULL);
		if (rc == 1) {
			rc = stream_reader_load(&r, &c, &b, NULL);
			assert_int_equal(stream_reader_verify(&r, &c, &b, NULL), rc);
		}
		assert_true(rc == -EBADMSG || rc == -ENODATA);
		assert_int_equal(pwrite(fd, &was, 1, at), 1);
	}
	assert_int_equal(stream_reader_init(&r, fd, NULL), 0);
	c = next(&r);
	assert_int_equal(stream_reader_load(&r, &c, &b, NULL), 0);
}

static void a_frame_that_promises_too_much_is_refused(void **state _unused_)
{
	/* A zstd frame of 1 TiB: magic, single segment with an 8-byte size, no content. */
	static const uint8_t bomb[] = { 0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0,    0,	  0,
					0,    0,    1,	  0,	0,    0x01, 0x00, 0x00 };
	_cleanup_close_ int fd = memory_file("", 0);
	_cleanup_buf_ struct buf b = BUF_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct stream_writer w;
	struct stream_reader r;
	struct chunk_header h;
	struct chunk c;

	assert_int_equal(stream_writer_init(&w, fd, 0), 0);
	assert_int_equal(stream_write(&w, CHUNK_KALLSYMS, bomb, sizeof(bomb)), 0);
	/* The hash covers the flag: write the chunk as a hostile writer would. */
	assert_int_equal(pread(fd, &h, sizeof(h), STREAM_MAGIC_SIZE), sizeof(h));
	h.flags = htole16(CHUNK_ZSTD);
	h.hash = 0;
	{
		uint8_t whole[sizeof(h) + sizeof(bomb)];

		memcpy(whole, &h, sizeof(h));
		memcpy(whole + sizeof(h), bomb, sizeof(bomb));
		h.hash = htole64(XXH3_64bits(whole, sizeof(whole)));
	}
	assert_int_equal(pwrite(fd, &h, sizeof(h), STREAM_MAGIC_SIZE), sizeof(h));
	assert_int_equal(stream_reader_init(&r, fd, NULL), 0);
	c = next(&r);
	assert_int_equal(stream_reader_load(&r, &c, &b, &err), -EBADMSG);
	assert_non_null(strstr(err.message, "too large"));
}

static void the_limit_leaves_room_to_close(void **state _unused_)
{
	_cleanup_close_ int fd = memory_file("", 0);
	_cleanup_free_ char *block = calloc(1, 4096);
	struct iovec page = { block, 4096 };
	struct stream_writer w;
	int n = 0;

	assert_non_null(block);
	assert_int_equal(stream_writer_init(&w, fd, STREAM_RESERVE + 10000), 0);
	while (stream_write_subbufs(&w, 0, BUFFER_MAIN, 0, &page, 1) == 0)
		n++;
	assert_int_equal(n, 2);
	assert_int_equal(stream_write_subbufs(&w, 0, BUFFER_MAIN, 0, &page, 1), -EDQUOT);
	assert_int_equal(w.failed, 0);
	assert_int_equal(stream_write(&w, CHUNK_END, NULL, 0), 0);
}

static void a_failed_write_is_kept(void **state _unused_)
{
	_cleanup_close_ int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct stream_writer w;

	assert_true(full >= 0);
	assert_int_equal(stream_writer_init(&w, full, 0), -ENOSPC);
	assert_int_equal(stream_write(&w, CHUNK_END, NULL, 0), -ENOSPC);
	assert_int_equal(w.bytes, 0);
}

static void too_long_a_payload_is_refused(void **state _unused_)
{
	_cleanup_close_ int fd = memory_file("", 0);
	struct stream_writer w;
	struct iovec iov[STREAM_IOV_MAX + 1] = { 0 };

	assert_int_equal(stream_writer_init(&w, fd, 0), 0);
	assert_int_equal(stream_write(&w, CHUNK_PRINTK, "", (size_t)CHUNK_PAYLOAD_MAX + 1), -E2BIG);
	assert_int_equal(stream_write_subbufs(&w, 0, BUFFER_MAIN, 0, iov, STREAM_IOV_MAX + 1),
			 -E2BIG);
	assert_int_equal(w.failed, 0);
	assert_int_equal(w.bytes, STREAM_MAGIC_SIZE);
}

static void other_files_are_refused(void **state _unused_)
{
	_cleanup_close_ int fd = memory_file("", 0), tty = open("/dev/null", O_RDONLY | O_CLOEXEC);
	_cleanup_error_ struct error err = ERROR_INIT;
	struct stream_reader r;

	assert_int_equal(stream_reader_init(&r, fd, NULL), -EBADMSG);
	assert_int_equal(pwrite(fd, "PK\3\4 something else", 20, 0), 20);
	assert_int_equal(stream_reader_init(&r, fd, &err), -EBADMSG);
	assert_non_null(err.hint);
	assert_int_equal(stream_reader_init(&r, tty, NULL), -ESPIPE);
}

/* Read as if they were in the stream, whole or in parts; without that file they are missing. */
static void sub_buffers_may_lie_elsewhere(void **state _unused_)
{
	_cleanup_close_ int fd = memory_file("", 0), pages = memory_file("", 0);
	const struct subbufs_header head = { .buffer = htole32(BUFFER_MORE) };
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct stream_writer w;
	struct stream_reader r;
	char whole[40];
	struct chunk c;

	assert_int_equal(write_full(pages, "another file: 0123456789abcdef0123456789ABCDEF", 46),
			 0);
	memcpy(whole, &head, sizeof(head));
	memcpy(whole + sizeof(head), "0123456789abcdef0123456789ABCDEF", 32);
	assert_int_equal(stream_writer_init(&w, fd, 0), 0);
	assert_int_equal(stream_write_elsewhere(&w, 3, BUFFER_MORE, 14, 32), 0);
	assert_int_equal(stream_write_elsewhere(&w, 3, BUFFER_MORE, 30, 32), 0);
	assert_int_equal(stream_reader_init(&r, fd, NULL), 0);
	c = next(&r);
	assert_int_equal(stream_reader_load(&r, &c, &b, NULL), -EBADMSG);

	assert_int_equal(stream_reader_init(&r, fd, NULL), 0);
	r.pages_fd = pages;
	c = next(&r);
	assert_int_equal(c.cpu, 3);
	assert_int_equal(c.flags, 0);
	assert_int_equal(c.length, sizeof(whole));
	assert_int_equal(r.elsewhere, 32);
	assert_int_equal(stream_reader_verify(&r, &c, &b, NULL), 0);
	assert_int_equal(stream_reader_load(&r, &c, &b, NULL), 0);
	assert_int_equal(b.len, sizeof(whole));
	assert_memory_equal(b.data, whole, sizeof(whole));
	for (uint32_t from = 0; from < sizeof(whole); from++) {
		for (uint32_t n = 0; n <= sizeof(whole) - from; n++) {
			assert_int_equal(stream_reader_load_part(&r, &c, from, n, &b, NULL), 0);
			assert_int_equal(b.len, n);
			assert_memory_equal(b.data, whole + from, n);
		}
	}
	assert_int_equal(stream_reader_load_part(&r, &c, 8, 33, &b, NULL), -EBADMSG);
	/* The file has become shorter. */
	c = next(&r);
	assert_int_equal(stream_reader_load(&r, &c, &b, NULL), -EBADMSG);
	assert_int_equal(stream_reader_next(&r, &c, NULL), 0);
}

/* Our hash equals the library's, for any registers and any split of the data. */
static void hashes_are_the_librarys(void **state)
{
	static uint8_t data[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * i >> 3);
	for (size_t len = 0; len < sizeof(data); len += len < 600 ? 1 : 97) {
		XXH3_state_t hash;

		XXH3_64bits_reset(&hash);
		for (size_t at = 0, n = 1; at < len; at += n, n = n * 2 + 5)
			hash_update(&hash, data + at, MIN(n, len - at));
		assert_true(XXH3_64bits_digest(&hash) == XXH3_64bits(data, len));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_are_the_librarys),
		cmocka_unit_test(chunks_come_back),
		cmocka_unit_test(a_part_is_its_chunks),
		cmocka_unit_test(bytes_are_as_documented),
		cmocka_unit_test(a_cut_stream_ends_at_its_last_whole_chunk),
		cmocka_unit_test(every_flipped_byte_is_noticed),
		cmocka_unit_test(a_frame_that_promises_too_much_is_refused),
		cmocka_unit_test(the_limit_leaves_room_to_close),
		cmocka_unit_test(a_failed_write_is_kept),
		cmocka_unit_test(too_long_a_payload_is_refused),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(sub_buffers_may_lie_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
