/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The boot recorder's files: its configuration, its state, the boot loaders' command lines. */
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "daemon/capture/boot_ring.h"
#include "daemon/capture/last_boot.h"
#include "daemon/service/boot_recorder.h"
#include "fake_root.h"
#include "kernel/boot_loader.h"
#include "proto/capture.pb-c.h"
#include "stream/reader.h"
#include "stream/writer.h"

/* Calls that still write; later ones exceed a quota of the filesystem. -1: there is none. */
static int quota = -1;

/* Calls that still write; the next one kills the process. -1: there is none. */
static int writes_left = -1;

static bool quota_exceeded(void)
{
	if (writes_left == 0)
		raise(SIGKILL);
	writes_left -= writes_left > 0;
	if (quota != 0) {
		quota -= quota > 0;
		return false;
	}
	errno = EDQUOT;
	return true;
}

ssize_t __real_writev(int fd, const struct iovec *parts, int count);
ssize_t __wrap_writev(int fd, const struct iovec *parts, int count);
ssize_t __real_copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t len,
			       unsigned flags);
ssize_t __wrap_copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t len,
			       unsigned flags);
ssize_t __real_sendfile64(int out, int in, off_t *at, size_t len);
ssize_t __wrap_sendfile64(int out, int in, off_t *at, size_t len);

ssize_t __wrap_writev(int fd, const struct iovec *parts, int count)
{
	return quota_exceeded() ? -1 : __real_writev(fd, parts, count);
}

ssize_t __wrap_copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t len,
			       unsigned flags)
{
	return quota_exceeded() ? -1 : __real_copy_file_range(in, in_at, out, out_at, len, flags);
}

ssize_t __wrap_sendfile64(int out, int in, off_t *at, size_t len)
{
	return quota_exceeded() ? -1 : __real_sendfile64(out, in, at, len);
}

static int setup(void **state)
{
	struct fake_root *root = calloc(1, sizeof(*root));

	assert_non_null(root);
	fake_root_init(root);
	*state = root;
	return 0;
}

static int teardown(void **state)
{
	fake_root_deinit(*state);
	free(*state);
	return 0;
}

static void check_file(const struct fake_root *root, const char *file, const char *wanted)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	assert_int_equal(read_file_at(AT_FDCWD, fake_path(root, file), 1 << 20, &text), 0);
	assert_string_equal(buf_string(&text), wanted);
}

static int load(const struct fake_root *root, const char *text, struct boot_recorder_config *c,
		struct error *err)
{
	fake_file(root, "conf", text);
	return boot_recorder_config_load(c, fake_path(root, "conf"), err);
}

static void a_configuration(void **state)
{
	_cleanup_boot_recorder_config_ struct boot_recorder_config c = { 0 }, again = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;

	assert_int_equal(load(*state,
			      "# a comment\n[boot-recorder]\ninstance = my_ring\nsize = 16M\n"
			      "events = sched irq:*, kmem:kmalloc\ntracer = function_graph\n",
			      &c, &err),
			 0);
	assert_int_equal(boot_recorder_config_print(&c, &text), 0);
	assert_int_equal(load(*state, buf_string(&text), &again, &err), 0);
	assert_string_equal(again.instance, "my_ring");
	assert_int_equal(again.size, 16 << 20);
	assert_int_equal(again.events.count, 3);
	assert_string_equal(again.events.items[1], "irq:*");
	assert_string_equal(again.tracer, "function_graph");
}

/* inih cuts long lines. */
static void many_events(void **state)
{
	_cleanup_boot_recorder_config_ struct boot_recorder_config c = { .size = 1 << 20 },
								   again = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;

	c.instance = strdup("my_ring");
	assert_non_null(c.instance);
	for (unsigned i = 0; i < 100; i++) {
		char event[64];

		snprintf(event, sizeof(event), "some_system:some_event_%u", i);
		assert_int_equal(string_list_add_words(&c.events, event), 0);
	}
	assert_int_equal(boot_recorder_config_print(&c, &text), 0);
	assert_int_equal(load(*state, buf_string(&text), &again, &err), 0);
	assert_int_equal(again.events.count, 100);
	assert_string_equal(again.events.items[99], "some_system:some_event_99");
}

static void without_a_configuration(void **state)
{
	_cleanup_boot_recorder_config_ struct boot_recorder_config c = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	assert_int_equal(boot_recorder_config_load(&c, fake_path(*state, "none"), &err), -ENOENT);
	assert_string_equal(c.instance, BOOT_RECORDER_INSTANCE);
	assert_non_null(strstr(err.hint, "boot-recorder enable"));
}

static void faulty_configurations(void **state)
{
	static const struct {
		const char *text, *message;
	} faults[] = {
		{ "[boot-recorder]\ninstance = a@b\n", ":2: instance: 'a@b'" },
		{ "[boot-recorder]\ninstance = ../x\n", ":2: instance: '../x'" },
		{ "[boot-recorder]\ninstance =\n", ":2: instance" },
		{ "[boot-recorder]\nsize = 5K\n", ":2: size" },
		{ "[boot-recorder]\nsize = lots\n", ":2" },
		{ "[boot-recorder]\ntracer = a b\n", ":2: tracer" },
		{ "[boot-recorder]\nevents = sched a'b\n", ":2: events: 'a'b'" },
		{ "[boot-recorder]\nevent = sched\n", ":2: unknown key 'event'" },
		{ "[daemon]\nsize = 5M\n", ":2: there is only" },
		{ "[boot-recorder]\nnonsense\n", ":2: neither" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		_cleanup_boot_recorder_config_ struct boot_recorder_config c = { 0 };
		_cleanup_error_ struct error err = ERROR_INIT;

		assert_int_equal(load(*state, faults[i].text, &c, &err), -EINVAL);
		if (!strstr(err.message, faults[i].message))
			fail_msg("%s lacks %s", err.message, faults[i].message);
	}
}

/* What 'enable' accepts, the configuration's file must hold. */
static void the_longest_event(void **state)
{
	_cleanup_boot_recorder_config_ struct boot_recorder_config c = { .size = 1 << 20 },
								   again = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf text = BUF_INIT;
	char event[130] = "";

	memset(event, 'x', 128);
	assert_int_equal(boot_recorder_check_event("-e", event, &err), 0);
	c.instance = strdup("my_ring");
	assert_non_null(c.instance);
	assert_int_equal(string_list_add_words(&c.events, event), 0);
	assert_int_equal(boot_recorder_config_print(&c, &text), 0);
	assert_int_equal(load(*state, buf_string(&text), &again, &err), 0);
	assert_string_equal(again.events.items[0], event);
	event[128] = 'x';
	assert_int_equal(boot_recorder_check_event("-e", event, &err), -EINVAL);
}

static void fake_boot(const struct fake_root *root, const char *id, const char *kernel)
{
	fake_file(root, "proc/sys/kernel/random/boot_id", id);
	fake_file(root, "proc/version", kernel);
}

static void what_a_boot_leaves(void **state)
{
	const struct fake_root *root = *state;
	char proc[256], dir[256], saved[] = "/var/lib/traced/x.traced";
	struct boot_recorder_state armed = { .armed = true, .saved = saved };
	_cleanup_boot_recorder_state_ struct boot_recorder_state s = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;

	snprintf(proc, sizeof(proc), "%s", fake_path(root, "proc"));
	snprintf(dir, sizeof(dir), "%s", fake_path(root, "spool"));
	fake_boot(root, "first\n", "Linux version 6.12\n");
	assert_int_equal(boot_recorder_state_load(&s, dir, "a", proc), 0);
	assert_false(s.of_this_boot || s.armed || s.kernel || s.saved);
	assert_int_equal(boot_recorder_state_save(&armed, dir, "a", proc, &err), 0);
	assert_int_equal(boot_recorder_state_load(&s, dir, "a", proc), 0);
	assert_true(s.of_this_boot && s.armed);
	assert_string_equal(s.saved, saved);
	boot_recorder_state_deinit(&s);
	/* Nothing is known of another instance. */
	assert_int_equal(boot_recorder_state_load(&s, dir, "b", proc), 0);
	assert_false(s.of_this_boot || s.armed || s.kernel || s.saved);
	fake_boot(root, "second\n", "Linux version 6.18\n");
	assert_int_equal(boot_recorder_state_load(&s, dir, "a", proc), 0);
	assert_false(s.of_this_boot);
	assert_string_equal(s.kernel, "Linux version 6.12");
}

/* Another kernel's numbers of events mean nothing to this one. */
static void another_kernels_ring(void **state)
{
	const struct fake_root *root = *state;
	char proc[256], kernel[] = "Linux version 6.12";
	struct boot_recorder_state s = { .kernel = kernel };
	const struct capture_env env = { .proc = proc };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct config config = { 0 };
	char *path = NULL;

	snprintf(proc, sizeof(proc), "%s", fake_path(root, "proc"));
	fake_boot(root, "second\n", "Linux version 6.18\n");
	assert_int_equal(boot_recorder_save(&env, "x", &s, &config, &path, &err), -ENOEXEC);
	assert_non_null(strstr(err.message, "Linux version 6.12"));
	assert_null(path);
}

static void a_torn_state(void **state)
{
	static const char *const texts[] = {
		"", "\n", "boot first\narmed yes\nsaved /x", "end .", "boot\nend .\n", "end \n"
	};
	const struct fake_root *root = *state;
	char proc[256];

	snprintf(proc, sizeof(proc), "%s", fake_path(root, "proc"));
	fake_boot(root, "first\n", "Linux\n");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_boot_recorder_state_ struct boot_recorder_state s = { 0 };

		fake_file(root, "boot-recorder-a.state", texts[i]);
		assert_int_equal(boot_recorder_state_load(&s, root->path, "a", proc), 0);
		assert_false(s.of_this_boot || s.armed || s.saved);
	}
}

#define WORDS "reserve_mem=16384K:32M:traced trace_instance=my^traceoff@traced"

static void command_lines(void **state _unused_)
{
	static const char *const lines[][2] = {
		{ "", "" },
		{ "quiet\n", "quiet\n" },
		{ WORDS, "" },
		{ WORDS "\n", "\n" },
		{ "quiet " WORDS " splash\n", "quiet splash\n" },
		{ "a  b\t" WORDS, "a  b" },
		{ "reserve_mem=12M:4096:trace trace_instance=boot_map@trace",
		  "reserve_mem=12M:4096:trace trace_instance=boot_map@trace" },
		{ "reserve_mem=:traced trace_instance=@traced x",
		  "reserve_mem=:traced trace_instance=@traced x" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		char *line = strdup(lines[i][0]);

		assert_non_null(line);
		assert_int_equal(boot_loader_strip(line), strcmp(lines[i][0], lines[i][1]) != 0);
		assert_string_equal(line, lines[i][1]);
		free(line);
	}
}

static void boot_loaders(void **state)
{
	const struct fake_root *root = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf next = BUF_INIT;

	assert_int_equal(boot_loader_add(root->path, WORDS, &next, &err), -ENOENT);
	fake_file(root, "etc/default/grub", "GRUB_TIMEOUT=5\n");
	fake_file(root, "etc/kernel/cmdline", "root=/dev/sda quiet\n");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(boot_loader_add(root->path, WORDS, &next, &err), 1);
		check_file(root, "etc/default/grub.d/traced-boot-recorder.cfg",
			   "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX " WORDS "\"\n");
		check_file(root, "etc/kernel/cmdline", "root=/dev/sda quiet " WORDS "\n");
	}
	assert_non_null(strstr(buf_string(&next), "update-grub"));
	assert_non_null(strstr(next.data, "kernel-install"));
	buf_deinit(&next);
	assert_int_equal(boot_loader_remove(root->path, &next, &err), 0);
	check_file(root, "etc/kernel/cmdline", "root=/dev/sda quiet\n");
	assert_int_not_equal(
		access(fake_path(root, "etc/default/grub.d/traced-boot-recorder.cfg"), F_OK), 0);
	assert_non_null(strstr(buf_string(&next), "update-grub"));
	buf_deinit(&next);
	assert_int_equal(boot_loader_remove(root->path, &next, &err), 0);
	assert_int_equal(next.len, 0);
}

/* The words for each boot loader, where nothing is written. */
static void each_boot_loader_is_explained(void **state _unused_)
{
	static const char *const lines[] = {
		"\n  GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX " WORDS "\"\n",
		"\n  grubby --update-kernel=ALL --args='" WORDS "'\n",
		"\n  " WORDS "\n",
		"\n  setenv bootargs \"${bootargs} " WORDS "\"; saveenv\n",
		"\n  BOARD_KERNEL_CMDLINE += " WORDS "\n",
	};
	_cleanup_buf_ struct buf text = BUF_INIT;

	boot_loader_explain(WORDS, &text);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (!strstr(buf_string(&text), lines[i]))
			fail_msg("no%sin\n%s", lines[i], text.data);
}

/* Other grub-mkconfigs than Debian's don't read the folder. */
static void a_grub_without_its_folder(void **state)
{
	const struct fake_root *root = *state;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf next = BUF_INIT;

	fake_file(root, "etc/default/grub", "GRUB_TIMEOUT=5\n");
	fake_file(root, "usr/sbin/grub2-mkconfig",
		  "if test -f ${sysconfdir}/default/grub ; then\n");
	assert_int_equal(boot_loader_add(root->path, WORDS, &next, &err), 0);
	assert_non_null(strstr(buf_string(&next), "grubby --update-kernel=ALL --args='" WORDS "'"));
	assert_null(strstr(next.data, "update-grub"));
	assert_int_not_equal(access(fake_path(root, "etc/default/grub.d"), F_OK), 0);
	buf_deinit(&next);
	assert_int_equal(boot_loader_remove(root->path, &next, &err), 0);
	assert_non_null(strstr(buf_string(&next), "grubby --remove-args"));
	buf_deinit(&next);
	fake_file(root, "usr/sbin/grub2-mkconfig",
		  "for x in ${sysconfdir}/default/grub.d/*.cfg ; do\n");
	assert_int_equal(boot_loader_add(root->path, WORDS, &next, &err), 1);
	check_file(root, "etc/default/grub.d/traced-boot-recorder.cfg",
		   "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX " WORDS "\"\n");
}

static void several_lines(void **state)
{
	static const struct {
		const char *before, *added, *removed;
	} files[] = {
		{ "root=/dev/sda ro\nquiet\n\n", "root=/dev/sda ro\nquiet " WORDS "\n",
		  "root=/dev/sda ro\nquiet\n" },
		{ "quiet\n# the end", "quiet\n# the end\n" WORDS "\n", "quiet\n# the end\n" },
		{ "# nothing yet\n", "# nothing yet\n" WORDS "\n", "# nothing yet\n" },
		{ "", WORDS "\n", "\n" },
	};
	const struct fake_root *root = *state;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_buf_ struct buf next = BUF_INIT;

		fake_file(root, "etc/kernel/cmdline", files[i].before);
		assert_int_equal(boot_loader_add(root->path, WORDS, &next, &err), 1);
		check_file(root, "etc/kernel/cmdline", files[i].added);
		assert_int_equal(boot_loader_remove(root->path, &next, &err), 0);
		check_file(root, "etc/kernel/cmdline", files[i].removed);
	}
}

#define RING "instances/traced_boot/"
#define HEADER_PAGE                                                                                \
	"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"                                 \
	"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"                                \
	"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"                                 \
	"\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"

static void make_ring(const struct fake_root *root, const char *info)
{
	static const char *const files[] = { "tracing_on",
					     "current_tracer",
					     "events/enable",
					     "events/sched/sched_switch/enable",
					     "events/sched/sched_waking/enable",
					     "events/irq/irq_handler_entry/enable",
					     "trace" };
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), RING "%s", files[i]);
		fake_file(root, path, "x\n");
	}
	fake_file(root, RING "last_boot_info", info);
	fake_file(root, RING "buffer_total_size_kb", "16288\n");
	fake_file(root, RING "per_cpu/cpu0/stats",
		  "entries: 7\noverrun: 0\ncommit overrun: 0\nbytes: 9\ndropped events: 0\n"
		  "read events: 0\n");
	fake_file(root, "trace_marker", "");
	fake_file(root, "events/enable", "0\n");
	fake_file(root, "available_events",
		  "sched:sched_switch\nsched:sched_waking\nirq:irq_handler_entry\n");
}

static void arming(void **state)
{
	static const char *const globs[] = { "sched", "nothing:*" };
	const struct boot_ring ring = { .instance = "traced_boot",
					.events = { globs, ARRAY_SIZE(globs) },
					.tracer = "function" };
	const struct fake_root *root = *state;
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf missing = BUF_INIT;
	struct boot_ring_state now;
	struct capture_env env;

	make_ring(root, "text delta:\t0\ndata delta:\t0\n");
	assert_int_equal(tracefs_open(&fs, root->path, &err), 0);
	env = (struct capture_env){ .tracefs = fs, .proc = "/proc" };
	assert_int_equal(boot_ring_arm(&env, &ring, &missing, &err), 0);
	assert_string_equal(buf_string(&missing), " nothing:*");
	check_file(root, RING "tracing_on", "1");
	check_file(root, RING "current_tracer", "function");
	check_file(root, RING "events/enable", "0");
	check_file(root, RING "events/sched/sched_waking/enable", "1");
	check_file(root, RING "events/irq/irq_handler_entry/enable", "x\n");
	check_file(root, RING "trace", "");
	assert_int_equal(boot_ring_look(&env, "traced_boot", &now, &err), 0);
	assert_true(now.on);
	assert_int_equal(now.events, 7);
	assert_int_equal(now.bytes, 16288 * 1024);
	assert_int_equal(boot_ring_disarm(&env, "traced_boot", &err), 0);
	check_file(root, RING "tracing_on", "0");
	check_file(root, RING "current_tracer", "nop");
	assert_int_equal(
		boot_ring_arm(&env, &(struct boot_ring){ .instance = "none" }, &missing, &err),
		-ENOENT);
	fake_file(root, "instances/other/tracing_on", "0\n");
	assert_int_equal(boot_ring_look(&env, "other", &now, &err), -ENOTTY);
}

/* Events that cannot be kept stay in the ring; an empty ring, or none, keeps nobody from arming. */
static void what_cannot_be_kept_stays(void **state)
{
	const struct fake_root *root = *state;
	char proc[256], spool_dir[256], kernel[] = "Linux version 6.12";
	struct boot_recorder_state s = { .kernel = kernel };
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	struct config config = { .spool_dir = spool_dir };
	struct capture_env env;
	char *path = NULL;

	snprintf(proc, sizeof(proc), "%s", fake_path(root, "proc"));
	snprintf(spool_dir, sizeof(spool_dir), "%s", fake_path(root, "spool"));
	fake_boot(root, "second\n", "Linux version 6.18\n");
	make_ring(root, "text delta:\t0\ndata delta:\t0\n");
	assert_int_equal(tracefs_open(&fs, root->path, &err), 0);
	env = (struct capture_env){ .tracefs = fs, .proc = proc };
	assert_int_equal(boot_recorder_keep(&env, "traced_boot", &s, &config, &path, &err),
			 -ENOEXEC);
	assert_non_null(strstr(err.message, "stay in the ring"));
	assert_non_null(strstr(err.message, "Linux version 6.12"));
	check_file(root, RING "trace", "x\n");
	fake_file(root, RING "per_cpu/cpu0/stats", "entries: 0\noverrun: 0\nread events: 0\n");
	assert_int_equal(boot_recorder_keep(&env, "traced_boot", &s, &config, &path, &err), 0);
	assert_int_equal(boot_recorder_keep(&env, "none", &s, &config, &path, &err), 0);
	assert_null(path);
}

/* A sub-buffer with 8 bytes of data, in words. */
static const uint64_t full_subbuf[512] = { 42, 8, 0x5ec0de };

static void make_full_ring(const struct fake_root *root)
{
	make_ring(root, "text delta:\t0\ndata delta:\t0\n");
	fake_file(root, RING "tracing_on", "0\n");
	fake_file(root, RING "trace_pipe", "");
	fake_data(root, RING "per_cpu/cpu0/trace_pipe_raw", full_subbuf, sizeof(full_subbuf));
	fake_file(root, "events/header_page", HEADER_PAGE);
	fake_file(root, "events/header_event", "");
	fake_file(root, "events/sched/sched_switch/format", "name: sched_switch\nID: 7\n");
	fake_boot(root, "second\n", "Linux version 6.18\n");
}

/* The number of chunks of a type in a recording. */
static unsigned count_chunks(const char *path, enum chunk_type type)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stream_reader r;
	unsigned found = 0;
	struct chunk c;

	if (stream_reader_init(&r, fd, NULL) < 0)
		return 0;
	while (stream_reader_next(&r, &c, NULL) > 0)
		found += c.type == type;
	return found;
}

/* A file that cannot grow: the error says where the events are that left the ring. */
static void a_save_that_fails_halfway(void **state)
{
	const struct fake_root *root = *state;
	char proc[256], spool_dir[256];
	struct config config = { .spool_dir = spool_dir };
	unsigned before = 0, halfway = 0, whole = 0;
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	struct capture_env env = { .proc = proc };

	snprintf(proc, sizeof(proc), "%s", fake_path(root, "proc"));
	snprintf(spool_dir, sizeof(spool_dir), "%s", fake_path(root, "spool"));
	make_full_ring(root);
	assert_int_equal(tracefs_open(&fs, root->path, NULL), 0);
	env.tracefs = fs;
	for (;;) {
		_cleanup_boot_recorder_state_ struct boot_recorder_state s = { 0 };
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_free_ char *path = NULL;
		int r;

		quota = (int)(before + halfway);
		r = boot_recorder_keep(&env, "traced_boot", &s, &config, &path, &err);
		quota = -1;
		if (r == 0)
			break;
		assert_int_equal(r, -EDQUOT);
		assert_null(path);
		assert_int_equal(boot_recorder_state_load(&s, spool_dir, "traced_boot", proc), 0);
		if (strstr(err.message, "this boot is not recorded: the last boot's events stay "
					"in the ring: ") == err.message) {
			assert_null(s.begun);
			before++;
			continue;
		}
		assert_ptr_equal(strstr(err.message, "this boot is not recorded: the events that "
						     "were taken out of the ring are in "),
				 err.message);
		assert_non_null(strstr(err.message, ".traced, the others stay in the ring: "));
		halfway++;
		/* A file without a whole sub-buffer is no recording of the last boot. */
		if (!s.begun)
			continue;
		assert_non_null(strstr(err.message, s.begun));
		assert_int_equal(count_chunks(s.begun, CHUNK_FORMAT), 1);
		whole++;
	}
	assert_true(before >= 3 && halfway >= 2 && whole);
}

/* Saves in a process that ends before the state is saved, or before a write. */
static bool keep_and_die(const struct capture_env *env, const struct config *config, int writes)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		_cleanup_error_ struct error err = ERROR_INIT;
		struct boot_recorder_state s = { 0 };
		char *path = NULL;

		writes_left = writes;
		_exit(boot_recorder_keep(env, "traced_boot", &s, config, &path, &err) < 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		return true;
	assert_int_equal(WEXITSTATUS(status), 0);
	return false;
}

/* Returns whether the save was killed. */
static bool check_killed_save(int writes)
{
	_cleanup_boot_recorder_state_ struct boot_recorder_state s = { 0 };
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_free_ char *path = NULL;
	char proc[256], spool_dir[256];
	struct config config = { .spool_dir = spool_dir };
	struct capture_env env = { .proc = proc };
	struct fake_root root;
	char files[300];
	glob_t saved;
	bool killed;
	int found;

	fake_root_init(&root);
	snprintf(proc, sizeof(proc), "%s", fake_path(&root, "proc"));
	snprintf(spool_dir, sizeof(spool_dir), "%s", fake_path(&root, "spool"));
	make_full_ring(&root);
	assert_int_equal(tracefs_open(&fs, root.path, &err), 0);
	env.tracefs = fs;
	killed = keep_and_die(&env, &config, writes);
	assert_int_equal(boot_recorder_state_load(&s, spool_dir, "traced_boot", proc), 0);
	assert_false(s.of_this_boot);
	/* The kernel removes from the ring what is read. */
	snprintf(files, sizeof(files), "%s/*.traced", spool_dir);
	found = glob(files, 0, NULL, &saved);
	assert_int_equal(s.begun != NULL,
			 found == 0 && count_chunks(saved.gl_pathv[0], CHUNK_SUBBUFS));
	if (found == 0 && count_chunks(saved.gl_pathv[0], CHUNK_SUBBUFS)) {
		fake_file(&root, RING "per_cpu/cpu0/stats", "entries: 0\nread events: 7\n");
		fake_file(&root, RING "per_cpu/cpu0/trace_pipe_raw", "");
	}
	globfree(&saved);
	assert_int_equal(boot_recorder_keep(&env, "traced_boot", &s, &config, &path, &err), 0);
	assert_non_null(path);
	assert_int_equal(count_chunks(path, CHUNK_SUBBUFS), 1);
	assert_int_equal(count_chunks(path, CHUNK_FORMAT), 1);
	fake_root_deinit(&root);
	return killed;
}

/* The next try finds the events, and what describes them, whenever a save is killed. */
static void a_save_that_is_killed(void **state _unused_)
{
	int writes = 0;

	while (check_killed_save(writes))
		writes++;
	/* The head, the format, the counts, the sub-buffer, the counts, the end at least. */
	assert_true(writes >= 6);
}

#define EARLY "ffffffff81000000 T _text\nffffffff81001000 T early\n"
#define LATE EARLY "ffffffffc0001000 t late\t[xfs]\n"

/* A stream of the last boot, saved before modules were loaded. */
static void make_saved(const char *path)
{
	Traced__Capture__LastBoot m = TRACED__CAPTURE__LAST_BOOT__INIT;
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint8_t page[4096] = { 7 };
	const struct iovec subbufs = { page, sizeof(page) };
	struct stream_writer w;

	m.text = 42;
	assert_int_equal(stream_writer_init(&w, fd, 0), 0);
	assert_int_equal(stream_write_message(&w, CHUNK_LAST_BOOT, &m.base), 0);
	assert_int_equal(stream_write_subbufs(&w, 3, BUFFER_MAIN, 0, &subbufs, 1), 0);
	assert_int_equal(stream_write_packed(&w, CHUNK_KALLSYMS, EARLY, strlen(EARLY)), 0);
	assert_int_equal(stream_write(&w, CHUNK_STATS, "x", 1), 0);
}

static void check_chunk(struct stream_reader *r, enum chunk_type type, uint32_t cpu,
			struct buf *payload)
{
	struct chunk c;

	assert_int_equal(stream_reader_next(r, &c, NULL), 1);
	assert_int_equal(c.type, type);
	assert_int_equal(c.cpu, cpu);
	assert_int_equal(stream_reader_load(r, &c, payload, NULL), 0);
	assert_non_null(buf_string(payload));
}

/* The names of modules that were loaded since the save; the rest is as it was. */
static void modules_that_came_late(void **state)
{
	const struct fake_root *root = *state;
	_cleanup_buf_ struct buf payload = BUF_INIT;
	_cleanup_error_ struct error err = ERROR_INIT;
	Traced__Capture__LastBoot *m;
	struct config config = { 0 };
	char proc[256], path[256];
	struct stream_reader r;
	int fd;

	snprintf(proc, sizeof(proc), "%s", fake_path(root, "proc"));
	snprintf(path, sizeof(path), "%s", fake_path(root, "saved.traced"));
	make_saved(path);
	fake_file(root, "proc/modules", "xfs 4096 0 - Live 0xffffffffc0000000\n");
	fake_file(root, "proc/kallsyms", LATE);
	assert_int_equal(
		boot_recorder_renew(&(struct capture_env){ .proc = proc }, &config, path, &err), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(stream_reader_init(&r, fd, NULL), 0);
	check_chunk(&r, CHUNK_LAST_BOOT, 0, &payload);
	m = traced__capture__last_boot__unpack(NULL, payload.len, (uint8_t *)payload.data);
	assert_non_null(m);
	assert_int_equal(m->text, 42);
	assert_int_equal(m->modules.len, strlen("xfs 4096 0 - Live 0xffffffffc0000000\n"));
	traced__capture__last_boot__free_unpacked(m, NULL);
	check_chunk(&r, CHUNK_SUBBUFS, 3, &payload);
	assert_int_equal(payload.len, sizeof(struct subbufs_header) + 4096);
	check_chunk(&r, CHUNK_KALLSYMS, 0, &payload);
	assert_string_equal(payload.data, LATE);
	check_chunk(&r, CHUNK_STATS, 0, &payload);
	assert_int_equal(stream_reader_next(&r, &(struct chunk){ 0 }, NULL), 0);
	close(fd);
	/* Hidden symbols would take the names that are there. */
	fake_file(root, "proc/kallsyms", "0000000000000000 T _text\n");
	assert_int_equal(
		boot_recorder_renew(&(struct capture_env){ .proc = proc }, &config, path, &err),
		-EPERM);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(stream_reader_init(&r, fd, NULL), 0);
	check_chunk(&r, CHUNK_LAST_BOOT, 0, &payload);
	close(fd);
	assert_int_not_equal(access(fake_path(root, "saved.traced.new"), F_OK), 0);
}

static void check_unchanged(const struct fake_root *root, off_t size)
{
	struct stat st;

	assert_int_equal(stat(fake_path(root, "saved.traced"), &st), 0);
	assert_int_equal(st.st_size, size);
	assert_int_not_equal(access(fake_path(root, "saved.traced.new"), F_OK), 0);
}

/* The second file of the last boot's events leaves min_free, too. */
static void free_space_is_left(void **state)
{
	const struct fake_root *root = *state;
	struct config config = { .min_free = UINT64_MAX };
	_cleanup_error_ struct error err = ERROR_INIT;
	char proc[256], path[256];
	struct capture_env env = { .proc = proc };
	struct stat st;
	int from, to;

	snprintf(proc, sizeof(proc), "%s", fake_path(root, "proc"));
	snprintf(path, sizeof(path), "%s", fake_path(root, "saved.traced"));
	make_saved(path);
	fake_file(root, "proc/modules", "xfs 4096 0 - Live 0xffffffffc0000000\n");
	fake_file(root, "proc/kallsyms", LATE);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(boot_recorder_renew(&env, &config, path, &err), -ENOSPC);
	assert_non_null(strstr(err.message, "saved.traced cannot be written again: "));
	assert_non_null(strstr(err.hint, "min_free"));
	check_unchanged(root, st.st_size);
	/* The symbols and modules of now make the file larger. */
	for (off_t limit = 1; limit <= st.st_size; limit += 8) {
		struct stat now;

		from = open(path, O_RDONLY | O_CLOEXEC);
		to = open(fake_path(root, "limited"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		assert_int_equal(last_boot_renew(&env, from, to, (uint64_t)limit, &err), -ENOBUFS);
		assert_int_equal(fstat(to, &now), 0);
		assert_true(now.st_size <= MAX(limit, (off_t)STREAM_MAGIC_SIZE));
		close(from);
		close(to);
	}
}

/* A quota of the filesystem is not min_free. */
static void a_quota_is_exceeded(void **state)
{
	const struct fake_root *root = *state;
	struct config config = { 0 };
	char proc[256], path[256];
	struct capture_env env = { .proc = proc };
	struct stat st;
	int calls = 0, r;

	snprintf(proc, sizeof(proc), "%s", fake_path(root, "proc"));
	snprintf(path, sizeof(path), "%s", fake_path(root, "saved.traced"));
	make_saved(path);
	fake_file(root, "proc/modules", "xfs 4096 0 - Live 0xffffffffc0000000\n");
	fake_file(root, "proc/kallsyms", LATE);
	assert_int_equal(stat(path, &st), 0);
	do {
		_cleanup_error_ struct error err = ERROR_INIT;

		quota = calls++;
		r = boot_recorder_renew(&env, &config, path, &err);
		quota = -1;
		if (r == 0)
			break;
		assert_int_equal(r, -EDQUOT);
		assert_non_null(strstr(err.message, "saved.traced cannot be written again: "));
		assert_non_null(strstr(err.message, "Disk quota exceeded"));
		assert_null(err.hint);
		check_unchanged(root, st.st_size);
	} while (calls < 100);
	/* The head, the modules, the sub-buffers, the symbols, the counts. */
	assert_int_equal(calls, 6);
}

/* A renewal that was killed leaves a file, which the next start removes. */
static void unfinished_files_are_removed(void **state)
{
	static const struct timespec old[2] = { { 1, 0 }, { 1, 0 } };
	const struct fake_root *root = *state;
	char spool_dir[256];
	struct config config = { .spool_dir = spool_dir };
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;
	char *path = NULL;
	int live;

	snprintf(spool_dir, sizeof(spool_dir), "%s", fake_path(root, "spool"));
	make_ring(root, "text delta:\t0\ndata delta:\t0\n");
	fake_file(root, RING "per_cpu/cpu0/stats", "entries: 0\noverrun: 0\nread events: 0\n");
	fake_file(root, "spool/killed.traced.new", "x");
	fake_file(root, "spool/live.traced.new", "x");
	fake_file(root, "spool/young.traced.new", "");
	fake_file(root, "spool/old.traced.new", "");
	fake_file(root, "spool/other.new", "x");
	assert_int_equal(utimensat(AT_FDCWD, fake_path(root, "spool/old.traced.new"), old, 0), 0);
	live = open(fake_path(root, "spool/live.traced.new"), O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(live, LOCK_EX), 0);
	assert_int_equal(tracefs_open(&fs, root->path, &err), 0);
	assert_int_equal(boot_recorder_keep(&(struct capture_env){ .tracefs = fs, .proc = "/proc" },
					    "traced_boot", &(struct boot_recorder_state){ 0 },
					    &config, &path, &err),
			 0);
	assert_int_not_equal(access(fake_path(root, "spool/killed.traced.new"), F_OK), 0);
	assert_int_not_equal(access(fake_path(root, "spool/old.traced.new"), F_OK), 0);
	assert_int_equal(access(fake_path(root, "spool/live.traced.new"), F_OK), 0);
	assert_int_equal(access(fake_path(root, "spool/young.traced.new"), F_OK), 0);
	assert_int_equal(access(fake_path(root, "spool/other.new"), F_OK), 0);
	close(live);
}

/* Whatever lies under the new file's name is not written into. */
static void files_are_replaced(void **state)
{
	const struct fake_root *root = *state;
	char path[256], target[256];
	struct stat st;
	mode_t old;

	snprintf(path, sizeof(path), "%s", fake_path(root, "x"));
	snprintf(target, sizeof(target), "%s", fake_path(root, "target"));
	fake_file(root, "target", "kept");
	assert_int_equal(symlink(target, fake_path(root, "x.new")), 0);
	old = umask(077);
	assert_int_equal(replace_file(path, "new", 3, 0644, true), 0);
	umask(old);
	check_file(root, "target", "kept");
	check_file(root, "x", "new");
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(replace_file(fake_path(root, "none/x"), "new", 3, 0644, true), -ENOENT);
}

static void a_ring_leaves_memory(void **state)
{
	static const struct {
		const char *meminfo;
		uint64_t bytes;
		int code;
		const char *says; /* NULL: nothing */
	} table[] = {
		{ "MemTotal: 1024 kB\n", UINT64_C(128) << 10, 0, NULL },
		{ "MemTotal: 1024 kB\n", UINT64_C(129) << 10, 0, "takes 12 %" },
		{ "MemFree: 1 kB\nMemTotal:       1024 kB\n", UINT64_C(1023) << 10, 0,
		  "takes 99 %" },
		{ "MemTotal: 1024 kB\n", UINT64_C(1024) << 10, -EINVAL, "this machine has 1" },
		{ "MemTotal: 1024 kB\n", UINT64_C(1) << 40, -EINVAL, "this machine has 1" },
		{ "MemFree: 1024 kB\n", UINT64_C(1) << 40, 0, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_buf_ struct buf warning = BUF_INIT;
		int r;

		fake_file(*state, "meminfo", table[i].meminfo);
		r = boot_recorder_check_memory("size", table[i].bytes,
					       ((struct fake_root *)*state)->path, &warning, &err);
		assert_int_equal(r, table[i].code);
		if (r == 0 && !table[i].says)
			assert_int_equal(warning.len, 0);
		else
			assert_non_null(
				strstr(r < 0 ? err.message : buf_string(&warning), table[i].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_configuration, setup, teardown),
		cmocka_unit_test_setup_teardown(many_events, setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_configuration, setup, teardown),
		cmocka_unit_test_setup_teardown(faulty_configurations, setup, teardown),
		cmocka_unit_test_setup_teardown(the_longest_event, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_boot_leaves, setup, teardown),
		cmocka_unit_test_setup_teardown(another_kernels_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(a_torn_state, setup, teardown),
		cmocka_unit_test_setup_teardown(a_ring_leaves_memory, setup, teardown),
		cmocka_unit_test(command_lines),
		cmocka_unit_test_setup_teardown(boot_loaders, setup, teardown),
		cmocka_unit_test(each_boot_loader_is_explained),
		cmocka_unit_test_setup_teardown(a_grub_without_its_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(several_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(files_are_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(arming, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_kept_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(a_save_that_fails_halfway, setup, teardown),
		cmocka_unit_test(a_save_that_is_killed),
		cmocka_unit_test_setup_teardown(modules_that_came_late, setup, teardown),
		cmocka_unit_test_setup_teardown(free_space_is_left, setup, teardown),
		cmocka_unit_test_setup_teardown(a_quota_is_exceeded, setup, teardown),
		cmocka_unit_test_setup_teardown(unfinished_files_are_removed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
