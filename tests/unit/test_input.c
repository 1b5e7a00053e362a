/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The input has an end, and its kind is checked before any of it is stored. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#if HAVE_ZSTD
#include <zstd.h>
#endif

#include <cmocka.h>

#include "base/io.h"
#include "input.h"
#include "memory_file.h"
#include "traced/stream.h"

static const enum input_kind kinds[] = { INPUT_RECORDING, INPUT_MARKS, INPUT_PROFILE };

/* The read end of a pipe into which a process writes that, once or without end. */
static int pipe_of(const void *data, size_t len, bool endless, pid_t *ret)
{
	int pipes[2];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	*ret = fork();
	assert_true(*ret >= 0);
	if (*ret == 0) {
		signal(SIGPIPE, SIG_IGN);
		close(pipes[0]);
		while (write_full(pipes[1], data, len) == 0 && endless)
			;
		_exit(0);
	}
	close(pipes[1]);
	return pipes[0];
}

static void a_device_is_refused(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_close_ int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

		assert_int_equal(input_keep(&fd, "/dev/zero", kinds[i], &err), -EINVAL);
		assert_non_null(strstr(err.message, "/dev/zero is a device"));
	}
}

static void a_pipe_of_something_else_is_refused(void **state _unused_)
{
	char zeros[4096] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_close_ int fd = -EBADF;
		pid_t pid;

		fd = pipe_of(zeros, sizeof(zeros), true, &pid);
		assert_int_equal(input_keep(&fd, "that", kinds[i], &err), -EBADMSG);
		assert_int_equal(strncmp(err.message, "that: ", 6), 0);
		fd = close_fd(fd);
		/* It ends because nobody reads on. */
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		/* Too short for any kind. */
		fd = pipe_of("", 0, false, &pid);
		assert_int_equal(input_keep(&fd, "that", kinds[i], &err), -EBADMSG);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
}

static void assert_kept(enum input_kind kind, const void *begin, size_t begin_len)
{
	const size_t len = 600001; /* several pieces, the last one partial */
	_cleanup_free_ char *data = malloc(len), *is = malloc(len);
	_cleanup_close_ int fd = -EBADF;
	pid_t pid;

	for (size_t i = 0; i < len; i++)
		data[i] = (char)(i * 7 >> 3);
	memcpy(data, begin, begin_len);
	fd = pipe_of(data, len, false, &pid);
	assert_int_equal(input_keep(&fd, "that", kind, NULL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), len);
	assert_int_equal(pread_full(fd, is, len, 0), len);
	assert_memory_equal(is, data, len);
}

static void a_pipe_is_kept(void **state _unused_)
{
	static const char *const marks[] = {
		"[", "{", " \r\n\t[", "\xef\xbb\xbf{", "\xef\xbb\xbf\n[", "\x1f\x8b"
	};
	static const struct {
		char bytes[40];
		size_t len;
	} profiles[] = {
		{ "\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\x27\0\0\0\0\0\0", 40 },
		{ "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x27\x10", 40 },
		{ "\0\0\0\0\3\0\0\0\0\0\0\0\x10\x27\0\0\0\0\0\0", 20 },
		{ "\0\0\0\0\0\0\0\3\0\0\0\0\0\0\x27\x10\0\0\0\0", 20 },
	};

	assert_kept(INPUT_RECORDING, STREAM_MAGIC, STREAM_MAGIC_SIZE);
	assert_kept(INPUT_RECORDING, "\x17\x08\x44tracing", 10);
	assert_kept(INPUT_RECORDING, "\x1f\x8b", 2);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		assert_kept(INPUT_MARKS, marks[i], strlen(marks[i]));
	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++)
		assert_kept(INPUT_PROFILE, profiles[i].bytes, profiles[i].len);
}

/* A regular file can be read again. */
static void a_file_stays_what_it_is(void **state _unused_)
{
	char path[] = "/tmp/test-input.XXXXXX";
	_cleanup_close_ int fd = mkstemp(path);
	int same = fd;

	assert_int_equal(unlink(path), 0);
	assert_int_equal(input_keep(&fd, path, INPUT_MARKS, NULL), 0);
	assert_int_equal(fd, same);
}

static void a_directory_is_refused(void **state _unused_)
{
	_cleanup_close_ int fd = open("/tmp", O_RDONLY | O_CLOEXEC);

	assert_int_equal(input_keep(&fd, "/tmp", INPUT_MARKS, NULL), -EISDIR);
}

/* For other input the error lists what can be converted, and why a JSON can't be. */
static void a_refusal_lists_the_sources(void **state _unused_)
{
	static const struct {
		const char *text;
		bool json;
	} cases[] = {
		{ "{\"traceEvents\":[]}", true }, { " \r\n[", true },
		{ "\xef\xbb\xbf{", true },	  { "# tracer: nop\n", false },
		{ "\x1f\x8b\x08", false },	  { "", false },
	};
	static const char *const sources[] = { ".traced", "trace.dat" };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_close_ int fd = memory_file(cases[i].text, strlen(cases[i].text));
		_cleanup_input_beside_ struct input_beside beside = { 0 };
		_cleanup_error_ struct error err = ERROR_INIT;

		assert_int_equal(input_import(&fd, &beside, "that", NULL, &err), -EBADMSG);
		assert_int_equal(strncmp(err.message, "that: ", 6), 0);
		assert_int_equal(strstr(err.message, "a JSON") != NULL, cases[i].json);
		for (size_t k = 0; k < ARRAY_SIZE(sources); k++)
			assert_non_null(strstr(err.hint, sources[k]));
	}
}

/* A Perfetto trace is recognized, plain or compressed; text that begins with a newline is not. */
static void a_perfetto_trace_is_named(void **state _unused_)
{
	/* gzip of the first case. */
	static const char packed[] =
		"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\xe3\x62\xe2\x60\x00\x00\x1e\x61\xa4\x85"
		"\x04\x00\x00\x00";
	static const struct {
		const char *data;
		size_t len;
		bool perfetto;
	} cases[] = {
		{ "\x0a\x02\x08\x00", 4, true }, /* one packet with a varint */
		{ packed, sizeof(packed) - 1, true },
		{ "\x0a\x80\x01\x0a\x7e", 5, true }, /* a longer one, cut */
		{ "\n\n# tracer: nop\n", 16, false },
		{ "\x0a\x00", 2, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_close_ int fd = memory_file(cases[i].data, cases[i].len);
		_cleanup_input_beside_ struct input_beside beside = { 0 };
		_cleanup_error_ struct error err = ERROR_INIT;

		assert_int_equal(input_import(&fd, &beside, "that", NULL, &err), -EBADMSG);
		assert_int_equal(strstr(err.message, "a Perfetto trace") != NULL,
				 cases[i].perfetto);
		assert_int_equal(strstr(err.hint, "record -o x.traced") != NULL, cases[i].perfetto);
	}
}

#define RECORDING_LEN 600001

/* Bytes that begin like a recording and do not compress well. */
static char *recording_data(void)
{
	char *data = malloc(RECORDING_LEN);
	uint32_t x = 1;

	assert_non_null(data);
	for (size_t i = 0; i < RECORDING_LEN; i++) {
		x = x * 1664525 + 1013904223;
		data[i] = (char)(x >> 24);
	}
	memcpy(data, STREAM_MAGIC, STREAM_MAGIC_SIZE);
	return data;
}

/* Two members of a gzip file, as `gzip -c` appends them. */
static int gzip_of(const char *data, size_t len)
{
	int fd = memory_file("", 0);

	for (size_t from = 0; from < len; from += len / 2 + 1) {
		gzFile gz = gzdopen(dup(fd), "ab");
		size_t n = MIN(len - from, len / 2 + 1);

		assert_non_null(gz);
		assert_int_equal(gzwrite(gz, data + from, (unsigned)n), n);
		assert_int_equal(gzclose(gz), Z_OK);
	}
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

#if HAVE_ZSTD
/* A skippable frame, then two frames, as pzstd writes. */
static int zstd_of(const char *data, size_t len)
{
	static const char skipped[] = "\x50\x2a\x4d\x18\x04\0\0\0more";
	int fd = memory_file(skipped, 12);

	assert_int_equal(lseek(fd, 12, SEEK_SET), 12);
	for (size_t from = 0; from < len; from += len / 2 + 1) {
		size_t n = MIN(len - from, len / 2 + 1), room = ZSTD_compressBound(n), packed;
		_cleanup_free_ char *out = malloc(room);

		packed = ZSTD_compress(out, room, data + from, n, 3);
		assert_false(ZSTD_isError(packed));
		assert_int_equal(write_full(fd, out, packed), 0);
	}
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}
#endif

static int (*const packers[])(const char *data, size_t len) = {
	gzip_of,
#if HAVE_ZSTD
	zstd_of,
#endif
};

static void a_compressed_recording_is_unpacked(void **state _unused_)
{
	_cleanup_free_ char *data = recording_data(), *is = malloc(RECORDING_LEN);

	for (size_t i = 0; i < ARRAY_SIZE(packers); i++) {
		_cleanup_close_ int fd = packers[i](data, RECORDING_LEN);
		_cleanup_input_beside_ struct input_beside beside = { 0 };
		_cleanup_error_ struct error err = ERROR_INIT;

		assert_int_equal(input_import(&fd, &beside, "that", NULL, &err), 0);
		assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
		assert_int_equal(lseek(fd, 0, SEEK_END), RECORDING_LEN);
		assert_int_equal(pread_full(fd, is, RECORDING_LEN, 0), RECORDING_LEN);
		assert_memory_equal(is, data, RECORDING_LEN);
	}
}

static void a_cut_compressed_recording_has_its_beginning(void **state _unused_)
{
	_cleanup_free_ char *data = recording_data(), *is = malloc(RECORDING_LEN);

	for (size_t i = 0; i < ARRAY_SIZE(packers); i++) {
		_cleanup_close_ int fd = packers[i](data, RECORDING_LEN);
		_cleanup_input_beside_ struct input_beside beside = { 0 };
		off_t len;

		assert_int_equal(ftruncate(fd, RECORDING_LEN / 4 * 3), 0);
		assert_int_equal(input_import(&fd, &beside, "that", NULL, NULL), 0);
		len = lseek(fd, 0, SEEK_END);
		assert_in_range(len, RECORDING_LEN / 2, RECORDING_LEN - 1);
		assert_int_equal(pread_full(fd, is, (size_t)len, 0), len);
		assert_memory_equal(is, data, (size_t)len);
	}
}

static void damaged_compression_is_refused(void **state _unused_)
{
	_cleanup_free_ char *data = recording_data();

	/* The last one is no damage, but not a recording, and is refused before it fills the disk.
	 */
	for (size_t i = 0; i < ARRAY_SIZE(packers) * 2; i++) {
		_cleanup_free_ char *zeros = calloc(1, RECORDING_LEN);
		bool damaged = i < ARRAY_SIZE(packers);
		_cleanup_close_ int fd =
			packers[i % ARRAY_SIZE(packers)](damaged ? data : zeros, RECORDING_LEN);
		_cleanup_input_beside_ struct input_beside beside = { 0 };
		_cleanup_error_ struct error err = ERROR_INIT;

		if (damaged)
			assert_int_equal(pwrite(fd, zeros, 90000, 200000), 90000);
		assert_int_equal(input_import(&fd, &beside, "that", NULL, &err), -EBADMSG);
		assert_int_equal(strstr(err.message, "compression is damaged") != NULL, damaged);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_device_is_refused),
		cmocka_unit_test(a_pipe_of_something_else_is_refused),
		cmocka_unit_test(a_pipe_is_kept),
		cmocka_unit_test(a_file_stays_what_it_is),
		cmocka_unit_test(a_directory_is_refused),
		cmocka_unit_test(a_refusal_lists_the_sources),
		cmocka_unit_test(a_perfetto_trace_is_named),
		cmocka_unit_test(a_compressed_recording_is_unpacked),
		cmocka_unit_test(a_cut_compressed_recording_has_its_beginning),
		cmocka_unit_test(damaged_compression_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
