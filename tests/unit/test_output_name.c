/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/io.h"
#include "formats/formats.h"
#include "lacking_fs.h"
#include "output/name.h"
#include "output/part.h"
#include "output/path.h"
#include "own_folder.h"

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	close(fd);
}

static void assert_content(const char *path, const char *text)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	assert_int_equal(read_file_at(AT_FDCWD, path, 1000, &b), 0);
	assert_string_equal(buf_string(&b), text);
}

static void appears_only_when_committed(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct output_name f;

	umask(027);
	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_FILE, &err), 0);
	assert_int_equal(access("out.json", F_OK), -1);
	assert_int_equal(write_full(f.fd, "{}", 2), 0);
	assert_int_equal(output_name_commit(&f, &err), 0);
	output_name_deinit(&f);
	assert_content("out.json", "{}");
	assert_int_equal(own_folder_count(), 1);

	struct stat st;

	assert_int_equal(stat("out.json", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
}

static void the_old_file_stays_until_then(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct output_name f;

	put("out.json", "old");
	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_FILE, &err), 0);
	assert_int_equal(write_full(f.fd, "new", 3), 0);
	assert_content("out.json", "old");
	assert_int_equal(output_name_commit(&f, &err), 0);
	assert_content("out.json", "new");
	output_name_deinit(&f);
	assert_int_equal(own_folder_count(), 1);
}

static void nothing_stays_of_what_is_dropped(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct output_name f;

	put("out.json", "old");
	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_FILE, &err), 0);
	assert_int_equal(write_full(f.fd, "new", 3), 0);
	output_name_deinit(&f);
	assert_content("out.json", "old");
	assert_int_equal(own_folder_count(), 1);
}

/* Through a second link, in another folder. */
static void a_link_to_what_is_not_there_yet_is_kept(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct stat st;

	assert_int_equal(mkdir("sub", 0755), 0);
	assert_int_equal(symlink("sub/link", "out.json"), 0);
	assert_int_equal(symlink("real", "sub/link"), 0);
	for (int part = 0; part < 2; part++) {
		struct output_name f;

		assert_int_equal(part ? output_name_open(&f, "out.json", OUTPUT_PART, &err)
				      : output_name_open(&f, "out.json", OUTPUT_FILE, &err),
				 0);
		assert_int_equal(write_full(f.fd, "{}", 2), 0);
		assert_int_equal(output_name_commit(&f, &err), 0);
		output_name_deinit(&f);
		assert_int_equal(lstat("out.json", &st), 0);
		assert_true(S_ISLNK(st.st_mode));
		assert_int_equal(lstat("sub/link", &st), 0);
		assert_true(S_ISLNK(st.st_mode));
		assert_content("sub/real", "{}");
		assert_int_equal(unlink("sub/real"), 0);
	}
}

/* The daemon has removed its own copy by then. */
static void what_cant_be_synced_is_kept(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_free_ char *path = NULL;
	struct output_name f;
	int diskless;

	fs_lacks = FS_LACKS_TMPFILE;
	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_FILE, &err), 0);
	fs_lacks = 0;
	assert_int_equal(write_full(f.fd, "{}", 2), 0);
	/* A descriptor without a disk: syncing it fails. */
	diskless = eventfd(0, EFD_CLOEXEC);
	assert_true(diskless >= 0);
	assert_int_equal(dup2(diskless, f.fd), f.fd);
	close(diskless);
	assert_int_equal(output_name_commit(&f, &err), -EINVAL);
	assert_int_equal(access("out.json", F_OK), -1);
	assert_non_null(strstr(err.hint, "saved as "));
	path = strdup(strstr(err.hint, "saved as ") + strlen("saved as "));
	output_name_deinit(&f);
	assert_content(path, "{}");
}

static void a_link_is_kept_and_its_target_replaced(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct output_name f;
	struct stat st;

	assert_int_equal(mkdir("sub", 0755), 0);
	put("sub/real", "old");
	assert_int_equal(symlink("sub/real", "out.json"), 0);
	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_FILE, &err), 0);
	assert_int_equal(write_full(f.fd, "new", 3), 0);
	assert_int_equal(output_name_commit(&f, &err), 0);
	output_name_deinit(&f);
	assert_int_equal(lstat("out.json", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_content("sub/real", "new");
}

static void a_device_is_written_in_place(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct output_name f;
	struct stat st;

	assert_int_equal(symlink("/dev/null", "null"), 0);
	assert_int_equal(output_name_open(&f, "null", OUTPUT_FILE, &err), 0);
	assert_int_equal(write_full(f.fd, "x", 1), 0);
	assert_int_equal(output_name_commit(&f, &err), 0);
	output_name_deinit(&f);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(lstat("null", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

/* A shell's ">> log" or "7>> log". */
static void a_descriptor_is_written_where_it_stands(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct output_name f;
	char name[32];
	int fd;

	put("log", "so far ");
	fd = open("log", O_WRONLY | O_APPEND);
	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	assert_int_equal(path_descriptor(name), fd);
	assert_int_equal(symlink(name, "link"), 0);
	assert_int_equal(path_descriptor("link"), fd);
	assert_int_equal(output_name_open(&f, "link", OUTPUT_FILE, &err), 0);
	assert_int_equal(write_full(f.fd, "and on", 6), 0);
	assert_int_equal(output_name_commit(&f, &err), 0);
	output_name_deinit(&f);
	assert_content("log", "so far and on");
	close(fd);
	assert_int_equal(output_name_open(&f, "link", OUTPUT_FILE, &err), -EBADF);
	assert_int_equal(unlink("link"), 0);
	assert_int_equal(unlink("log"), 0);
}

static void what_is_no_descriptor_for_us(void **state _unused_)
{
	char name[32];
	int fd;

	put("file", "");
	fd = open("file", O_WRONLY | O_CLOEXEC); /* programs open their own files like this */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	assert_int_equal(path_descriptor(name), -EBADF);
	close(fd);
	fd = open("file", O_RDONLY);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	assert_int_equal(path_descriptor(name), -EBADF);
	close(fd);
	assert_int_equal(mkdir("fd", 0755), 0);
	put("fd/1", "");
	assert_int_equal(path_descriptor("fd/1"), -ENOENT);
	assert_int_equal(path_descriptor("/proc/self/fd/x"), -ENOENT);
	assert_int_equal(path_descriptor("/proc/self/fd/"), -ENOENT);
	assert_int_equal(path_descriptor("/proc/1/fd/1"), -ENOENT);
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(path_descriptor("loop"), -ENOENT);
	assert_int_equal(unlink("loop"), 0);
}

static void what_can_not_be_written_is_found_at_once(void **state _unused_)
{
	static const struct {
		const char *path;
		int r;
		const char *message;
	} table[] = {
		{ "absent/out.json", -ENOENT, "the directory absent does not exist" },
		{ "file/out.json", -ENOTDIR, "file/out.json: file is not a directory" },
		{ "sub", -EISDIR, "sub is a directory" },
		{ "sub/", -EISDIR, "sub/ is a directory" },
		{ "new/", -ENOENT, "the directory new does not exist" },
		{ "/proc/out.json", -ENOENT, "cannot create a file in /proc" },
		{ "link", -ENOENT, "link: the directory /absent does not exist" },
		{ "sub/link", -ENOENT, "sub/link: the directory sub/absent does not exist" },
	};

	assert_int_equal(mkdir("sub", 0755), 0);
	put("file", "");
	assert_int_equal(symlink("/absent/out.json", "link"), 0);
	assert_int_equal(symlink("absent/out.json", "sub/link"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_output_name_ struct output_name f = OUTPUT_NAME_INIT;
		int r = output_name_open(&f, table[i].path, OUTPUT_FILE, &err);

		assert_true(r < 0);
		assert_non_null(err.message);
		if (table[i].message) {
			assert_int_equal(r, table[i].r);
			assert_non_null(strstr(err.message, table[i].message));
			assert_non_null(err.hint);
		}
	}
	assert_int_equal(own_folder_count(), 3);
}

static void a_named_temporary_becomes_the_file(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct output_name f;

	fs_lacks = FS_LACKS_TMPFILE;
	put("out.json", "old");
	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_FILE, &err), 0);
	assert_int_equal(own_folder_count(), 2);
	assert_int_equal(write_full(f.fd, "new", 3), 0);
	assert_int_equal(output_name_commit(&f, &err), 0);
	output_name_deinit(&f);
	assert_int_equal(own_folder_count(), 1);
	assert_content("out.json", "new");
	assert_int_equal(output_name_open(&f, "other", OUTPUT_FILE, &err), 0);
	output_name_deinit(&f);
	assert_int_equal(own_folder_count(), 1);
	fs_lacks = 0;
}

/* The only file that the hint calls saved. The caller frees it. */
static char *saved_as(const struct error *err)
{
	const char *path = err->hint ? strstr(err->hint, "saved as ") : NULL;

	assert_non_null(path);
	return strdup(path + strlen("saved as "));
}

static void a_name_taken_by_a_directory_loses_nothing(void **state _unused_)
{
	for (int named = 0; named < 2; named++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_free_ char *path = NULL;
		struct output_name f;

		fs_lacks = named ? FS_LACKS_TMPFILE : 0;
		assert_int_equal(output_name_open(&f, "out.json", OUTPUT_FILE, &err), 0);
		assert_int_equal(write_full(f.fd, "dear", 4), 0);
		assert_int_equal(mkdir("out.json", 0755), 0);
		assert_int_equal(output_name_commit(&f, &err), -EISDIR);
		output_name_deinit(&f);
		path = saved_as(&err);
		assert_content(path, "dear");
		assert_int_equal(own_folder_count(), 2);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(rmdir("out.json"), 0);
	}
	fs_lacks = 0;
}

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void a_file_of_another_user_stays(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct output_name f;

	need_root();
	put("out.json", "theirs");
	assert_int_equal(chown("out.json", 65534, 65534), 0);
	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_FILE, &err), -EPERM);
	assert_non_null(strstr(err.message, "65534"));
	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_PART, &err), -EPERM);
	assert_int_equal(symlink("out.json", "link.json"), 0);
	assert_int_equal(output_name_open(&f, "link.json", OUTPUT_FILE, &err), -EPERM);
	assert_int_equal(own_folder_count(), 2);
	assert_content("out.json", "theirs");
	/* With sudo both are the same person. */
	assert_int_equal(setenv("SUDO_UID", "65534", 1), 0);
	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_FILE, &err), 0);
	assert_int_equal(write_full(f.fd, "mine", 4), 0);
	assert_int_equal(output_name_commit(&f, &err), 0);
	output_name_deinit(&f);
	unsetenv("SUDO_UID");
	assert_content("out.json", "mine");
}

static void so_does_one_that_came_meanwhile(void **state _unused_)
{
	need_root();
	for (int named = 0; named < 2; named++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_free_ char *path = NULL;
		struct output_name f;

		fs_lacks = named ? FS_LACKS_TMPFILE : 0;
		assert_int_equal(output_name_open(&f, "out.json", OUTPUT_FILE, &err), 0);
		assert_int_equal(write_full(f.fd, "dear", 4), 0);
		put("out.json", "theirs");
		assert_int_equal(chown("out.json", 65534, 65534), 0);
		assert_int_equal(output_name_commit(&f, &err), -EPERM);
		output_name_deinit(&f);
		assert_content("out.json", "theirs");
		path = saved_as(&err);
		assert_content(path, "dear");
		assert_int_equal(own_folder_count(), 2);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(unlink("out.json"), 0);
	}
	fs_lacks = 0;
}

/* The same if a link of the caller's leads to such a link: nothing is created. */
static void a_link_to_a_link_of_another_user_makes_nothing(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct output_name f;

	need_root();
	assert_int_equal(mkdir("shared", 0700), 0);
	assert_int_equal(chmod("shared", 01777), 0);
	assert_int_equal(symlink("shared/theirs", "out.json"), 0);
	assert_int_equal(symlink("../stolen", "shared/theirs"), 0);
	assert_int_equal(lchown("shared/theirs", 65534, 65534), 0);
	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_FILE, &err), -EPERM);
	assert_int_equal(access("stolen", F_OK), -1);
}

/* The result is the same with fs.protected_symlinks on or off. */
static void a_link_of_another_user_is_not_followed_where_all_may_write(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct output_name f;

	need_root();
	put("mine.json", "mine");
	assert_int_equal(mkdir("shared", 0700), 0);
	assert_int_equal(chown("shared", 65533, 65533), 0);
	assert_int_equal(chmod("shared", 01777), 0);
	assert_int_equal(symlink("../mine.json", "shared/out.json"), 0);
	assert_int_equal(lchown("shared/out.json", 65534, 65534), 0);
	assert_int_equal(output_name_open(&f, "shared/out.json", OUTPUT_FILE, &err), -EPERM);
	assert_non_null(strstr(err.message, "symbolic link"));
	assert_content("mine.json", "mine");
	/* A link is followed if both it and its folder are the caller's or root's. */
	assert_int_equal(lchown("shared/out.json", 0, 0), 0);
	assert_int_equal(output_name_open(&f, "shared/out.json", OUTPUT_FILE, &err), -EPERM);
	assert_int_equal(chown("shared", 0, 0), 0);
	assert_int_equal(output_name_open(&f, "shared/out.json", OUTPUT_FILE, &err), 0);
	output_name_deinit(&f);
	/* With sudo its caller's, too. */
	assert_int_equal(chown("shared", 65534, 65534), 0);
	assert_int_equal(setenv("SUDO_UID", "65534", 1), 0);
	assert_int_equal(output_name_open(&f, "shared/out.json", OUTPUT_FILE, &err), 0);
	output_name_deinit(&f);
	unsetenv("SUDO_UID");
}

static void a_directory_that_went_loses_nothing(void **state)
{
	for (int named = 0; named < 2; named++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_free_ char *path = NULL;
		struct output_name f;
		struct stat st;

		setenv("TMPDIR", *state, 1);
		fs_lacks = named ? FS_LACKS_TMPFILE : 0;
		assert_int_equal(mkdir("sub", 0755), 0);
		assert_int_equal(output_name_open(&f, "sub/out.json", OUTPUT_FILE, &err), 0);
		assert_int_equal(write_full(f.fd, "dear", 4), 0);
		if (named)
			assert_int_equal(unlinkat(f.dir_fd, f.temp, 0), 0);
		assert_int_equal(rmdir("sub"), 0);
		assert_int_equal(output_name_commit(&f, &err), -ENOENT);
		output_name_deinit(&f);
		path = saved_as(&err);
		assert_content(path, "dear");
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
		assert_int_equal(own_folder_count(), 1);
		assert_int_equal(unlink(path), 0);
	}
	fs_lacks = 0;
	unsetenv("TMPDIR");
}

/* The name is taken by a directory with content. Returns whether the output is kept anyway. */
static bool taken_directory_is_kept(void)
{
	_cleanup_output_name_ struct output_name n = OUTPUT_NAME_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_free_ char *metadata = NULL;

	if (output_name_open(&n, "out.ctf", OUTPUT_DIRECTORY, NULL) < 0 ||
	    mknodat(output_name_folder(&n), "metadata", S_IFREG | 0644, 0) < 0 ||
	    mkdir("out.ctf", 0755) < 0 || mkdir("out.ctf/theirs", 0755) < 0 ||
	    output_name_commit(&n, &err) != -ENOTEMPTY)
		return false;
	output_name_deinit(&n);
	return err.hint && !strncmp(err.hint, "it is complete, and saved as out.ctf.", 37) &&
	       asprintf(&metadata, "%s/metadata", strstr(err.hint, "out.ctf.")) > 0 &&
	       access(metadata, F_OK) == 0;
}

/* Below a closed folder we cannot look up the path of the current one, but can rename in it. */
static void a_directory_is_kept_below_a_closed_folder(void **state _unused_)
{
	pid_t pid;
	int status;

	need_root();
	assert_int_equal(mkdir("closed", 0700), 0);
	assert_int_equal(mkdir("closed/open", 0700), 0);
	assert_int_equal(chown("closed/open", 65534, 65534), 0);
	pid = fork();
	assert_true(pid >= 0);
	/* A process that changed its user is not dumpable: its /proc/self would be closed, too. */
	if (!pid)
		_exit(chdir("closed/open") < 0 || setresuid(65534, 65534, 65534) < 0 ||
		      prctl(PR_SET_DUMPABLE, 1) < 0 || !taken_directory_is_kept());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* The content is visible while it is written; at the end the temporary name goes. */
static void a_part_is_seen(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct output_name f, other;

	put("out.json", "old");
	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_PART, &err), 0);
	assert_int_equal(write_full(f.fd, "new", 3), 0);
	assert_content("out.json.part", "new");
	assert_content("out.json", "old");
	assert_int_equal(output_name_open(&other, "out.json", OUTPUT_PART, &err), -EEXIST);
	assert_int_equal(output_name_commit(&f, &err), 0);
	output_name_deinit(&f);
	assert_content("out.json", "new");
	assert_int_equal(own_folder_count(), 1);

	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_PART, &err), 0);
	output_name_deinit(&f);
	assert_int_equal(own_folder_count(), 1);
}

static void a_part_leaves_room_for_its_ending(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	struct output_name f = OUTPUT_NAME_INIT;
	char name[NAME_MAX + 1] = "";

	fs_lacks = FS_LACKS_LIMIT;
	memset(name, 'x', NAME_MAX);
	assert_int_equal(output_name_open(&f, name, OUTPUT_PART, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.message, "x.part: File name too long"));
	assert_non_null(err.hint);
	name[NAME_MAX - strlen(PART)] = '\0';
	assert_int_equal(output_name_open(&f, name, OUTPUT_PART, &err), 0);
	assert_int_equal(output_name_commit(&f, &err), 0);
	output_name_deinit(&f);
	fs_lacks = 0;
	assert_int_equal(access(name, F_OK), 0);
	assert_int_equal(own_folder_count(), 1);
}

static void standard_output_is_no_directory(void **state _unused_)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_output_name_ struct output_name n = OUTPUT_NAME_INIT;

	assert_int_equal(output_name_open(&n, "-", OUTPUT_DIRECTORY, &err), -EINVAL);
	assert_string_equal(err.message, "standard output: not a name for a new directory");
	assert_int_equal(own_folder_count(), 0);
}

static void a_rehearsal_leaves_nothing(void **state _unused_)
{
	for (fs_lacks = 0; fs_lacks < 4; fs_lacks++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		struct output_name f;

		assert_int_equal(output_name_open(&f, "out.json", OUTPUT_PART, &err), 0);
		assert_int_equal(output_name_rehearse(&f, &err), 0);
		output_name_deinit(&f);
		assert_int_equal(own_folder_count(), 0);
	}
	fs_lacks = 0;
}

static void recover(const char *expected)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	int r = part_recover("out.json", export_format_find("json", NULL), &name);

	assert_int_equal(r, expected != NULL);
	if (expected)
		assert_string_equal(buf_string(&name), expected);
}

static void what_was_left_is_named(void **state _unused_)
{
	static const char text[] = "{\"systemTraceEvents\":\"# a\\nb\\nc";
	static const char closed[] =
		"{\"systemTraceEvents\":\"# a\\nb\\n\",\n\"traceEvents\":[]}\n";
	struct output_name f;

	recover(NULL);
	put("out.json.part", text);
	recover("out.partial.json");
	assert_content("out.partial.json", closed);
	put("out.json.part", text);
	recover("out.partial.2.json");
	assert_content("out.partial.2.json", closed);
	put("out.json.part", "{\"systemTra");
	recover(NULL);
	assert_int_equal(own_folder_count(), 2);
	/* Perhaps from a browser. */
	put("out.json.part", "another's");
	recover(NULL);
	assert_content("out.json.part", "another's");
	assert_int_equal(unlink("out.json.part"), 0);

	/* Another process writes it. */
	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_PART, NULL), 0);
	recover(NULL);
	assert_int_equal(write_full(f.fd, text, strlen(text)), 0);
	recover(NULL);
	assert_content("out.json.part", text);
	output_name_deinit(&f);
	assert_int_equal(own_folder_count(), 2);
}

static void a_part_can_be_left(void **state _unused_)
{
	_cleanup_output_name_ struct output_name f = OUTPUT_NAME_INIT;

	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_FILE, NULL), 0);
	assert_false(output_name_leave(&f));
	output_name_deinit(&f);
	assert_int_equal(output_name_open(&f, "out.json", OUTPUT_PART, NULL), 0);
	assert_int_equal(write_full(f.fd, "[\n{},\n{", 8), 0);
	assert_true(output_name_leave(&f));
	output_name_deinit(&f);
	assert_content("out.json.part", "[\n{},\n{");
	/* Kept for the next recording of that name. */
	recover("out.partial.json");
	assert_content("out.partial.json", "[\n{}]\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, own_folder_setup, own_folder_teardown)
		T(appears_only_when_committed),
		T(a_part_is_seen),
		T(a_part_leaves_room_for_its_ending),
		T(standard_output_is_no_directory),
		T(a_rehearsal_leaves_nothing),
		T(what_was_left_is_named),
		T(a_part_can_be_left),
		T(the_old_file_stays_until_then),
		T(nothing_stays_of_what_is_dropped),
		T(a_link_is_kept_and_its_target_replaced),
		T(a_link_to_what_is_not_there_yet_is_kept),
		T(what_cant_be_synced_is_kept),
		T(a_device_is_written_in_place),
		T(a_descriptor_is_written_where_it_stands),
		T(what_is_no_descriptor_for_us),
		T(what_can_not_be_written_is_found_at_once),
		T(a_named_temporary_becomes_the_file),
		T(a_name_taken_by_a_directory_loses_nothing),
		T(a_file_of_another_user_stays),
		T(so_does_one_that_came_meanwhile),
		T(a_link_of_another_user_is_not_followed_where_all_may_write),
		T(a_link_to_a_link_of_another_user_makes_nothing),
		T(a_directory_that_went_loses_nothing),
		T(a_directory_is_kept_below_a_closed_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
