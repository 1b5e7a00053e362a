/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of functions: of this program, and of maps that programs write for code that they compiled.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/io.h"
#include "symbols/code_symbols.h"
#include "symbols/jit_map.h"

static char folder[] = "/tmp/code_symbols.XXXXXX";

static int make_folder(void **state _unused_)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state _unused_)
{
	return rmdir(folder);
}

/* Must not be inlined, and needs a symbol. */
__attribute__((noinline, used)) static int marked_function(int n)
{
	return n * 3 + 1;
}

/* The program's own header, at which its file was mapped. */
static int first_object(struct dl_phdr_info *info, size_t size _unused_, void *userdata)
{
	const struct code_place *place = userdata;
	uint64_t address = place->address - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && address >= ph->p_vaddr &&
		    address < ph->p_vaddr + ph->p_memsz)
			((struct code_place *)userdata)->offset =
				address - ph->p_vaddr + ph->p_offset;
	}
	return 1;
}

static struct code_place own_place(char *path, size_t size)
{
	struct code_place place = { .path = path, .address = (uintptr_t)marked_function };
	ssize_t n = readlink("/proc/self/exe", path, size - 1);

	assert_true(n > 0);
	path[n] = '\0';
	assert_int_equal(dl_iterate_phdr(first_object, &place), 1);
	assert_true(place.offset > 0);
	return place;
}

static void own_functions_have_names(void **state _unused_)
{
	char path[4096];
	struct code_place place = own_place(path, sizeof(path));
	struct code_symbols *s;

#if !HAVE_LIBDW
	skip();
#endif
	assert_int_equal(marked_function(2), 7);
	assert_int_equal(code_symbols_new(&s, NULL, NULL), 0);
	assert_string_equal(code_symbols_find(s, &place), "marked_function");
	place.offset = UINT32_MAX;
	assert_null(code_symbols_find(s, &place));
	code_symbols_free(s);
}

/* A program that was rebuilt since is another program. */
static void another_build_is_not_used(void **state _unused_)
{
	char path[4096];
	struct code_place place = own_place(path, sizeof(path));
	struct code_symbols *s;

#if !HAVE_LIBDW
	skip();
#endif
	place.build_id = "twenty bytes of lies";
	place.build_id_len = 20;
	assert_int_equal(code_symbols_new(&s, folder, NULL), 0);
	assert_null(code_symbols_find(s, &place));
	assert_null(code_symbols_find(s, &place));
	assert_int_equal(code_symbols_changed(s), 1);
	code_symbols_free(s);
}

static void a_folder_is_searched_first(void **state _unused_)
{
	char path[4096];
	struct code_place place = own_place(path, sizeof(path));
	_cleanup_free_ char *last = NULL;
	struct code_symbols *s;

#if !HAVE_LIBDW
	skip();
#endif
	assert_true(asprintf(&last, "%s/elsewhere", folder) > 0);
	assert_int_equal(symlink(path, last), 0);
	place.path = "/no/such/place/elsewhere";
	assert_int_equal(code_symbols_new(&s, folder, NULL), 0);
	assert_string_equal(code_symbols_find(s, &place), "marked_function");
	code_symbols_free(s);
	assert_int_equal(unlink(last), 0);
}

/* A capture may name any file: the reader neither waits for it nor obeys it. */
static void other_files_are_not_opened(void **state _unused_)
{
	static const char *const paths[] = { "/dev/zero", "/dev/stdin", "/proc",      "/",
					     "relative",  "/dev/null",	"/etc/passwd" };
	_cleanup_free_ char *fifo = NULL;
	struct code_symbols *s;

	assert_true(asprintf(&fifo, "%s/fifo", folder) > 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(code_symbols_new(&s, NULL, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_null(code_symbols_find(s, &(struct code_place){ .path = paths[i] }));
	assert_null(code_symbols_find(s, &(struct code_place){ .path = fifo }));
	code_symbols_free(s);
	assert_int_equal(unlink(fifo), 0);
}

/* To open it may do something already. A terminal's multiplexer makes a terminal. */
static void what_is_no_program_is_not_opened(void **state _unused_)
{
	static const char *const paths[] = { "/dev/ptmx", "/proc/version", "/sys/kernel/notes",
					     "/proc/kcore" };
	int before = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char event[4096];

	assert_true(inotify_add_watch(before, "/dev", IN_OPEN) >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (access(paths[i], F_OK) == 0)
			assert_int_equal(code_file_open(paths[i], CODE_FILE_ELF), -EINVAL);
	assert_int_equal(code_file_open("/none", CODE_FILE_ELF), -ENOENT);
	for (ssize_t n = read(before, event, sizeof(event)), at = 0; at < n;) {
		const struct inotify_event *e = (const void *)&event[at];

		assert_string_not_equal(e->name, "ptmx");
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	close_fd(before);
}

static void write_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
}

static void compiled_code_has_names(void **state _unused_)
{
	_cleanup_free_ char *map = NULL;
	struct code_place place = { .path = "", .pid = 4194400, .address = 0x2005 };
	struct code_symbols *s;

	assert_true(asprintf(&map, "%s/perf-4194400.map", folder) > 0);
	write_file(map, "2000 10 old name\n"
			"no line\n1000 20 LazyCompile:~one app.js:7\n"
			"2000 10 new name\nffffffffffffffff 10 beyond\n3000 0 empty\n3000 8 last");
	assert_int_equal(code_symbols_new(&s, folder, NULL), 0);
	assert_string_equal(code_symbols_find(s, &place), "new name");
	place.address = 0x101f;
	place.path = "//anon";
	assert_string_equal(code_symbols_find(s, &place), "LazyCompile:~one app.js:7");
	place.address = 0x1020;
	assert_null(code_symbols_find(s, &place));
	place.address = 0x3007;
	assert_string_equal(code_symbols_find(s, &place), "last");
	place.pid = 0;
	assert_null(code_symbols_find(s, &place));
	code_symbols_free(s);
	assert_int_equal(unlink(map), 0);
}

static unsigned asked; /* for files */

static int ask_for_file(void *userdata _unused_, const char *path, enum code_file_kind kind)
{
	asked++;
	return code_file_open(path, kind);
}

/* Debug information in a file of its own, from a process that opens files for us. */
static void separate_files_come_from_an_opener(void **state _unused_)
{
	static const struct code_opener opener = { .open = ask_for_file };
	char path[4096], command[5000];
	struct code_place place = own_place(path, sizeof(path));
	struct code_symbols *s;

#if !HAVE_LIBDW
	skip();
#endif
	snprintf(
		command, sizeof(command),
		"cd %s && mkdir .debug && cp %s t && objcopy --only-keep-debug t .debug/t.debug && "
		"objcopy --strip-all --remove-section=.gnu_debugdata "
		"--add-gnu-debuglink=.debug/t.debug t",
		folder, path);
	if (system("command -v objcopy >/dev/null") != 0)
		skip();
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/t", folder);
	assert_int_equal(code_symbols_new(&s, NULL, &opener), 0);
	assert_string_equal(code_symbols_find(s, &place), "marked_function");
	assert_in_range(asked, 2, 6);
	code_symbols_free(s);
	snprintf(command, sizeof(command), "rm -r %s/.debug %s/t", folder, folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_functions_have_names),
		cmocka_unit_test(another_build_is_not_used),
		cmocka_unit_test(a_folder_is_searched_first),
		cmocka_unit_test(other_files_are_not_opened),
		cmocka_unit_test(what_is_no_program_is_not_opened),
		cmocka_unit_test(separate_files_come_from_an_opener),
		cmocka_unit_test(compiled_code_has_names),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
