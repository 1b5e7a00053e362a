/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files made of an exporter's frames, and the rest of a truncated file. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/io.h"
#include "export/segment.h"
#include "formats/formats.h"
#include "lacking_fs.h"
#include "output/directory.h"
#include "output/split.h"
#include "own_folder.h"

static void assert_content(const char *path, const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	if (read_file_at(AT_FDCWD, path, 1 << 20, &b) < 0)
		fail_msg("%s is not there", path);
	assert_string_equal(buf_string(&b), text);
}

static void start(struct split *s, const char *path, const char *format, unsigned keep)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	if (split_start(s, path, export_format_find(format, NULL), keep, &err) < 0)
		fail_msg("%s", err.message);
}

static int put_frame(struct framed *f, enum segment_frame_kind kind, const char *text)
{
	struct segment_frame head = { .kind = kind, .len = text ? (uint32_t)strlen(text) : 0 };
	int r = write_full(f->fd, &head, sizeof(head));

	return r == 0 && text ? write_full(f->fd, text, strlen(text)) : r;
}

static int put(struct split *s, enum segment_frame_kind kind, const char *text)
{
	return put_frame(&s->process, kind, text);
}

static void put_files(struct split *s, unsigned count)
{
	for (unsigned i = 1; i <= count; i++) {
		assert_int_equal(put(s, SEGMENT_DATA, "a li"), 0);
		assert_int_equal(put(s, SEGMENT_DATA, "ne\n"), 0);
		assert_int_equal(put(s, i < count ? SEGMENT_END : SEGMENT_LAST, NULL), 0);
	}
}

static void assert_range(const struct split *s, unsigned from, unsigned to)
{
	unsigned first, last;

	assert_true(split_range(s, &first, &last));
	assert_int_equal(first, from);
	assert_int_equal(last, to);
}

static void each_file_has_its_number(void **state _unused_)
{
	struct split s;
	unsigned own;

	start(&s, "out.txt", "txt", 0);
	put_files(&s, 3);
	assert_int_equal(framed_finish(&s.process, NULL), 0);
	assert_range(&s, 1, 3);
	split_deinit(&s);
	assert_content("out.0001.txt", "a line\n");
	assert_content("out.0003.txt", "a line\n");
	assert_int_equal(access("out.0004.txt", F_OK), -1);

	/* Numbers go on; names that only look like numbers do not count. */
	assert_int_equal(symlink("x", "out.0099x.txt"), 0);
	assert_int_equal(symlink("x", "out.77.txt"), 0);
	assert_int_equal(symlink("x", "xout.0088.txt"), 0);
	assert_int_equal(symlink("x", "out.20261121.txt"), 0);
	assert_int_equal(symlink("x", "out.00002.txt"), 0);
	start(&s, "out.txt", "txt", 2);
	put_files(&s, 3);
	assert_int_equal(framed_finish(&s.process, NULL), 0);
	assert_range(&s, 5, 6);
	/* Three of the first recording, and one of its own. */
	assert_int_equal(split_removed(&s, &own), 4);
	assert_int_equal(own, 1);
	split_deinit(&s);
	assert_int_equal(access("out.0004.txt", F_OK), -1);
	assert_int_equal(access("out.0001.txt", F_OK), -1);
	assert_int_equal(unlink("out.20261121.txt"), 0);
	assert_int_equal(unlink("out.00002.txt"), 0);
}

static void names_keep_their_ending(void **state _unused_)
{
	static const struct {
		const char *path, *format, *name;
	} names[] = {
		{ "a.b/x.json.gz", "json.gz", "a.b/x.0001.json.gz" },
		{ "a.b/x", "json", "a.b/x.0001" },
		{ "./x.perfetto-trace", "pftrace", "./x.0001.perfetto-trace" },
		{ ".hidden", "txt", ".hidden.0001" },
	};

	assert_int_equal(mkdir("a.b", 0755), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct split s;

		start(&s, names[i].path, names[i].format, 0);
		put_files(&s, 1);
		assert_int_equal(framed_finish(&s.process, NULL), 0);
		split_deinit(&s);
		assert_content(names[i].name, "a line\n");
	}
}

/* The last file keeps what is whole. */
static void a_writer_that_dies_leaves_a_prefix(void **state _unused_)
{
	struct split s;

	start(&s, "out.txt", "txt", 0);
	put(&s, SEGMENT_DATA, "first\n");
	put(&s, SEGMENT_END, NULL);
	put(&s, SEGMENT_DATA, "second\nthi");
	assert_int_equal(write_full(s.process.fd, "\1\0", 2), 0);
	assert_int_equal(framed_finish(&s.process, NULL), -EPIPE);
	assert_range(&s, 1, 2);
	split_deinit(&s);
	assert_content("out.0001.txt", "first\n");
	assert_content("out.0002.txt", "second\n");
}

static void what_was_given_up_is_not_kept(void **state _unused_)
{
	struct split s;

	start(&s, "out.txt", "txt", 0);
	put(&s, SEGMENT_DATA, "first\n");
	put(&s, SEGMENT_END, NULL);
	put(&s, SEGMENT_DATA, "second\n");
	framed_give_up(&s.process);
	assert_int_equal(framed_finish(&s.process, NULL), -EPIPE);
	assert_range(&s, 1, 1);
	split_deinit(&s);
	assert_int_equal(access("out.0002.txt", F_OK), -1);

	start(&s, "none.txt", "txt", 0);
	assert_int_equal(framed_finish(&s.process, NULL), -EPIPE);
	assert_false(split_range(&s, &(unsigned){ 0 }, &(unsigned){ 0 }));
	split_deinit(&s);
}

static void what_is_no_frame_ends_it(void **state _unused_)
{
	const struct segment_frame bad[] = { { 77, 0 }, { SEGMENT_DATA, SEGMENT_FRAME_MAX + 1 } };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct split s;

		start(&s, "out.txt", "txt", 0);
		assert_int_equal(write_full(s.process.fd, &bad[i], sizeof(bad[i])), 0);
		assert_int_equal(framed_finish(&s.process, NULL), -EPROTO);
		assert_false(split_range(&s, &(unsigned){ 0 }, &(unsigned){ 0 }));
		split_deinit(&s);
	}
}

static void no_room_is_told(void **state _unused_)
{
	const struct rlimit none = { 10, RLIM_INFINITY }, all = { RLIM_INFINITY, RLIM_INFINITY };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct split s;

	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	start(&s, "out.txt", "txt", 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	put(&s, SEGMENT_DATA, "one\ntwo\nthree\n");
	assert_int_equal(framed_finish(&s.process, &err), -EFBIG);
	assert_non_null(strstr(err.message, "out.0001.txt"));
	assert_range(&s, 1, 1);
	split_deinit(&s);
	assert_content("out.0001.txt", "one\ntwo\n");
}

static void where_no_file_can_be_is_told_first(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct split s;

	assert_int_equal(split_start(&s, "there/out.txt", export_format_find("txt", NULL), 0, &err),
			 -ENOENT);
	assert_non_null(strstr(err.message, "does not exist"));
}

static void await(const char *path)
{
	for (unsigned i = 0; access(path, F_OK) < 0; i++) {
		if (i == 5000)
			fail_msg("%s does not come", path);
		usleep(1000);
	}
}

static void two_recordings_share_a_name(void **state _unused_)
{
	struct split a, b;

	start(&a, "out.txt", "txt", 0);
	start(&b, "out.txt", "txt", 0);
	put(&a, SEGMENT_DATA, "a1\n");
	await("out.0001.txt.part");
	put(&b, SEGMENT_DATA, "b1\n");
	await("out.0002.txt.part");
	put(&a, SEGMENT_END, NULL);
	put(&b, SEGMENT_END, NULL);
	await("out.0001.txt");
	await("out.0002.txt");
	put(&b, SEGMENT_DATA, "b2\n");
	await("out.0003.txt.part");
	put(&b, SEGMENT_LAST, NULL);
	assert_int_equal(framed_finish(&b.process, NULL), 0);
	put(&a, SEGMENT_DATA, "a2\n");
	put(&a, SEGMENT_LAST, NULL);
	assert_int_equal(framed_finish(&a.process, NULL), 0);
	assert_content("out.0001.txt", "a1\n");
	assert_content("out.0002.txt", "b1\n");
	assert_content("out.0003.txt", "b2\n");
	assert_content("out.0004.txt", "a2\n");
	assert_range(&a, 1, 4);
	assert_false(split_has(&a, 2) || split_has(&a, 3) || split_has(&b, 4));
	assert_range(&b, 2, 3);
	assert_int_equal(unlink("out.0004.txt"), 0);
	assert_range(&a, 1, 1);
	split_deinit(&a);
	split_deinit(&b);
}

/* Another process created the file meanwhile. */
static void a_taken_number_is_left_alone(void **state _unused_)
{
	for (fs_lacks = 0; fs_lacks < 4; fs_lacks++) {
		struct split s;

		start(&s, "out.txt", "txt", 0);
		put(&s, SEGMENT_DATA, "ours\n");
		await("out.0001.txt.part");
		assert_int_equal(symlink("nowhere", "out.0001.txt"), 0);
		assert_int_equal(mkdir("out.0002.txt", 0755), 0);
		put(&s, SEGMENT_LAST, NULL);
		assert_int_equal(framed_finish(&s.process, NULL), 0);
		assert_range(&s, 3, 3);
		split_deinit(&s);
		assert_content("out.0003.txt", "ours\n");
		assert_int_equal(access("out.0001.txt.part", F_OK), -1);
		assert_int_equal(unlink("out.0001.txt") | unlink("out.0003.txt"), 0);
		assert_int_equal(rmdir("out.0002.txt"), 0);
	}
	fs_lacks = 0;
}

static void put_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_int_equal(write_full(fd, text, strlen(text)), 0);
}

static void what_a_killed_one_left_is_named(void **state _unused_)
{
	struct split s;

	put_file("out.0003.txt.part", "# head\nwhole\ncut");
	put_file("out.0004.txt.part", "# head\nwhole, too\n");
	put_file("out.0004.txt", "another's\n");
	put_file("out.0007.txt.part", "# nothing");
	put_file("out.x.txt.part", "another's\n");
	start(&s, "out.txt", "txt", 0);
	assert_non_null(
		strstr(buf_string(&s.notes), "out.0003.txt.part of a killed recording is now "));
	put_files(&s, 1);
	assert_int_equal(framed_finish(&s.process, NULL), 0);
	assert_range(&s, 6, 6);
	split_deinit(&s);
	assert_content("out.0003.txt", "# head\nwhole\n");
	assert_content("out.0004.txt", "another's\n");
	assert_content("out.0005.txt", "# head\nwhole, too\n");
	assert_int_equal(access("out.0007.txt", F_OK), -1);
	assert_content("out.x.txt.part", "another's\n");
}

/* The exporter ended, or the disk was full, before the last file had an event. */
static void a_head_alone_is_not_left(void **state _unused_)
{
	struct split s;

	start(&s, "out.txt", "txt", 0);
	put(&s, SEGMENT_DATA, "# tracer: nop\na line\n");
	put(&s, SEGMENT_END, NULL);
	put(&s, SEGMENT_DATA, "# tracer: nop\n#\n");
	s.process.fd = close_fd(s.process.fd);
	assert_int_equal(framed_finish(&s.process, NULL), -EPIPE);
	assert_range(&s, 1, 1);
	split_deinit(&s);
	assert_content("out.0001.txt", "# tracer: nop\na line\n");
	assert_int_equal(access("out.0002.txt", F_OK), -1);
	assert_int_equal(access("out.0002.txt.part", F_OK), -1);
}

static void numbers_end(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct split s;

	put_file("out.9999999.txt", "last\n");
	assert_int_equal(split_start(&s, "out.txt", export_format_find("txt", NULL), 0, &err),
			 -EOVERFLOW);
	assert_non_null(err.hint);
}

static void begin_directory(struct framed *d, const char *path)
{
	_cleanup_error_ struct error err = ERROR_INIT;

	if (directory_start(d, path, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(put_frame(d, SEGMENT_FILE, "cpu_0"), 0);
	assert_int_equal(put_frame(d, SEGMENT_DATA, "one "), 0);
}

/* The number of names in the folder, without "." and "..". */
static unsigned count_names(void)
{
	unsigned count = 0;
	DIR *d = opendir(".");

	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count - 2;
}

static void a_directory_appears_whole(void **state _unused_)
{
	struct framed d;

	for (unsigned i = 0; i < 2; i++) {
		/* An empty directory of that name may exist. */
		const char *path = i ? "again///" : "out.ctf";

		assert_int_equal(i ? mkdir(path, 0777) : 0, 0);
		begin_directory(&d, path);
		assert_int_equal(put_frame(&d, SEGMENT_FILE, "metadata"), 0);
		assert_int_equal(put_frame(&d, SEGMENT_DATA, "words"), 0);
		assert_int_equal(put_frame(&d, SEGMENT_FILE, "cpu_0"), 0);
		assert_int_equal(put_frame(&d, SEGMENT_DATA, "two"), 0);
		assert_int_equal(access("out.ctf", F_OK), i ? 0 : -1);
		assert_int_equal(put_frame(&d, SEGMENT_LAST, NULL), 0);
		assert_int_equal(framed_finish(&d, NULL), 0);
		framed_deinit(&d);
	}
	assert_content("out.ctf/cpu_0", "one two");
	assert_content("again/metadata", "words");
	assert_int_equal(count_names(), 2);
}

static void a_directory_that_was_cut_is_removed(void **state _unused_)
{
	struct framed d;

	begin_directory(&d, "out.ctf");
	assert_int_equal(framed_finish(&d, NULL), -EPIPE);
	framed_deinit(&d);
	assert_int_equal(count_names(), 0);
}

/* The sender of the frames may be compromised by its input. */
static void a_directory_has_no_other_names(void **state _unused_)
{
	static const char *const bad[] = { "",
					   "..",
					   "../x",
					   "/tmp/x",
					   ".hidden",
					   "a/b",
					   "A",
					   "0123456789012345678901234567890123456789"
					   "0123456789012345678901234" };
	struct framed d;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		begin_directory(&d, "out.ctf");
		put_frame(&d, SEGMENT_FILE, bad[i]);
		assert_int_equal(framed_finish(&d, NULL), -EPROTO);
		framed_deinit(&d);
	}
	begin_directory(&d, "out.ctf");
	put_frame(&d, SEGMENT_END, NULL);
	assert_int_equal(framed_finish(&d, NULL), -EPROTO);
	framed_deinit(&d);
	assert_int_equal(count_names(), 0);
}

static void a_directory_replaces_nothing(void **state _unused_)
{
	struct framed d;

	put_file("file", "mine");
	assert_int_equal(mkdir("full", 0777), 0);
	put_file("full/file", "mine");
	assert_int_equal(symlink("nowhere", "link"), 0);
	assert_int_equal(directory_start(&d, "file", NULL), -EEXIST);
	assert_int_equal(directory_start(&d, "full/", NULL), -EEXIST);
	assert_int_equal(directory_start(&d, "link", NULL), -EEXIST);
	assert_int_equal(directory_start(&d, "no/out", NULL), -ENOENT);
	assert_int_equal(directory_start(&d, "..", NULL), -EINVAL);
	assert_int_equal(directory_start(&d, "/", NULL), -EINVAL);
	assert_int_equal(count_names(), 3);
}

/* An existing name stays, and the trace gets another one. */
static void a_directory_whose_name_is_taken_is_saved(void **state _unused_)
{
	for (fs_lacks = 0; fs_lacks < 4; fs_lacks++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_free_ char *saved = NULL;
		struct framed d;

		begin_directory(&d, "late.ctf");
		put_file("late.ctf", "mine");
		assert_int_equal(put_frame(&d, SEGMENT_LAST, NULL), 0);
		assert_int_equal(framed_finish(&d, &err), -ENOTDIR);
		framed_deinit(&d);
		assert_content("late.ctf", "mine");
		assert_non_null(err.hint);
		assert_non_null(strstr(err.hint, "it is complete, and saved as /"));
		assert_non_null(strstr(err.hint, "/late.ctf."));
		assert_true(asprintf(&saved, "%s/cpu_0", strchr(err.hint, '/')) > 0);
		assert_content(saved, "one ");
		assert_int_equal(unlink("late.ctf"), 0);
		assert_int_equal(count_names(), fs_lacks + 1);
	}
	fs_lacks = 0;
}

static void a_directory_must_be_ones_own(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct framed d;

	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir("theirs", 0777), 0);
	assert_int_equal(chown("theirs", 65534, 65534), 0);
	assert_int_equal(directory_start(&d, "theirs", NULL), -EPERM);
	assert_int_equal(directory_start(&d, "theirs", &err), -EPERM);
	assert_non_null(strstr(err.message, "belongs to uid 65534"));
	/* With sudo both are the same person. */
	assert_int_equal(setenv("SUDO_UID", "65534", 1), 0);
	begin_directory(&d, "theirs");
	framed_deinit(&d);
	unsetenv("SUDO_UID");
	assert_int_equal(count_names(), 1);
}

/* The directory may be empty or not. */
static void a_directory_that_cant_be_read_is_told(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	uid_t uid = geteuid();
	struct framed d;
	int r;

	assert_int_equal(mkdir("locked", 0), 0);
	if (uid == 0) {
		/* Root can read it anyway. */
		assert_int_equal(chown("locked", 65534, 65534) | chmod(".", 0755), 0);
		assert_int_equal(seteuid(65534), 0);
	}
	r = directory_start(&d, "locked", &err);
	assert_int_equal(seteuid(uid), 0);
	assert_int_equal(r, -EACCES);
	assert_non_null(strstr(err.message, strerror(EACCES)));
	assert_null(strstr(err.message, "empty"));
}

static void signals_are_as_before(void **state _unused_)
{
	struct framed d;
	sigset_t set;

	begin_directory(&d, "out.ctf");
	assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &set), 0);
	assert_false(sigismember(&set, SIGINT) || sigismember(&set, SIGTERM));
	framed_deinit(&d);
}

#define HANGS_S 60

/* The process waits as in a write to a file system that does not answer. */
static int take_hangs(void *maker _unused_, const struct frame *frame _unused_,
		      struct error *err _unused_)
{
	sleep(HANGS_S);
	return 0;
}

static void end_nothing(void *maker _unused_)
{
}

static void a_process_that_hangs_is_left(void **state _unused_)
{
	static const struct framed_ops ops = { .report_size = sizeof(struct framed_report),
					       .take = take_hangs,
					       .end = end_nothing };
	uint64_t began = now_ns(CLOCK_MONOTONIC);
	struct framed f;
	pid_t pid;

	assert_int_equal(framed_start(&f, &ops, NULL, "out", -EBADF, NULL), 0);
	pid = f.pid;
	assert_int_equal(put_frame(&f, SEGMENT_DATA, "a line\n"), 0);
	framed_give_up(&f);
	assert_int_equal(framed_finish(&f, NULL), -EPIPE);
	assert_int_equal(f.left, pid);
	framed_deinit(&f);
	assert_true(now_ns(CLOCK_MONOTONIC) - began < HANGS_S * NSEC_PER_SEC);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

#define test_in_folder(f) cmocka_unit_test_setup_teardown(f, own_folder_setup, own_folder_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_folder(each_file_has_its_number),
		test_in_folder(names_keep_their_ending),
		test_in_folder(a_writer_that_dies_leaves_a_prefix),
		test_in_folder(what_was_given_up_is_not_kept),
		test_in_folder(what_is_no_frame_ends_it),
		test_in_folder(no_room_is_told),
		test_in_folder(where_no_file_can_be_is_told_first),
		test_in_folder(two_recordings_share_a_name),
		test_in_folder(a_taken_number_is_left_alone),
		test_in_folder(what_a_killed_one_left_is_named),
		test_in_folder(a_head_alone_is_not_left),
		test_in_folder(numbers_end),
		test_in_folder(a_directory_appears_whole),
		test_in_folder(a_directory_that_was_cut_is_removed),
		test_in_folder(a_directory_has_no_other_names),
		test_in_folder(a_directory_replaces_nothing),
		test_in_folder(a_directory_whose_name_is_taken_is_saved),
		test_in_folder(a_directory_must_be_ones_own),
		test_in_folder(a_directory_that_cant_be_read_is_told),
		test_in_folder(signals_are_as_before),
		test_in_folder(a_process_that_hangs_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
