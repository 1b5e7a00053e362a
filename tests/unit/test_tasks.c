/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a stream says of tasks, clocks and counts, and the names that its reader needs. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "capture/clocks.h"
#include "capture/identifiers.h"
#include "capture/names.h"
#include "capture/recording.h"
#include "capture/ring.h"
#include "capture/tasks.h"
#include "fake_root.h"
#include "proto/capture.pb-c.h"
#include "stream/reader.h"
#include "util/io.h"

#define STAT_TAIL " 0 0 0 -1 %u 0 0 0 0 0 0 0 0 20 0 1 0 %u 1 2 3\n"

struct fixture {
	struct fake_root root;
	struct stream_writer writer;
	int fd;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	fake_root_init(&f->root);
	f->fd = open(fake_path(&f->root, "stream"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(f->fd >= 0);
	assert_int_equal(stream_writer_init(&f->writer, f->fd, 0), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close_fd(f->fd);
	fake_root_deinit(&f->root);
	free(f);
	return 0;
}

static void add_task(struct fixture *f, int pid, int tid, const char *comm, unsigned flags)
{
	char path[128], text[256];

	snprintf(path, sizeof(path), "proc/%d/task/%d/stat", pid, tid);
	snprintf(text, sizeof(text), "%d (%s) S 1" STAT_TAIL, tid, comm, flags, 200U);
	fake_file(&f->root, path, text);
	snprintf(path, sizeof(path), "proc/%d/status", pid);
	fake_file(&f->root, path, "Name:\tx\nUid:\t1000\t0\t0\t0\n");
	snprintf(path, sizeof(path), "proc/%d/cmdline", pid);
	fake_data(&f->root, path, "/bin/x\0-y\0", flags ? 0 : 10);
}

/* All tasks of the stream's TASKS chunks, the index'th message's in *ret. */
static unsigned read_tasks(struct fixture *f, Traced__Capture__Tasks **ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct stream_reader reader;
	struct chunk chunk;
	unsigned n = 0;

	*ret = NULL;
	assert_int_equal(stream_reader_init(&reader, f->fd, NULL), 0);
	while (stream_reader_next(&reader, &chunk, NULL) > 0) {
		if (chunk.type != CHUNK_TASKS)
			continue;
		assert_int_equal(stream_reader_load(&reader, &chunk, &b, NULL), 0);
		if (*ret)
			traced__capture__tasks__free_unpacked(*ret, NULL);
		*ret = traced__capture__tasks__unpack(NULL, b.len, (uint8_t *)b.data);
		assert_non_null(*ret);
		n += (unsigned)(*ret)->n_tasks;
	}
	return n;
}

static void stat_lines(void **state _unused_)
{
	static const char odd[] = "7 (a) b ) S 3"
				  " 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 250 1 2 3\n";
	struct task_stat t;

	assert_int_equal(task_stat_parse(&t, odd, sizeof(odd) - 1, 100), 0);
	assert_int_equal(t.tid, 7);
	assert_int_equal(t.ppid, 3);
	assert_string_equal(t.comm, "a) b ");
	assert_true(t.kthread);
	assert_int_equal(t.start_ns, UINT64_C(2500000000));
	assert_int_equal(task_stat_parse(&t, odd, 12, 100), -EBADMSG);
	assert_int_equal(task_stat_parse(&t, "", 0, 100), -EBADMSG);
	assert_int_equal(task_stat_parse(&t, "1 )x( S 1", 9, 100), -EBADMSG);
	assert_int_equal(task_stat_parse(&t, "0 (x) S 1", 9, 100), -EBADMSG);
}

static void scan_finds_threads(void **state)
{
	struct fixture *f = *state;
	struct task_scan scan;
	Traced__Capture__Tasks *t;
	bool main_seen = false, thread_seen = false, kthread_seen = false;

	add_task(f, 10, 10, "main", 0);
	add_task(f, 10, 11, "worker", 0);
	add_task(f, 2, 2, "kthreadd", 0x200000);
	fake_dir(&f->root, "proc/99/task/99"); /* it is just ending */
	fake_dir(&f->root, "proc/sys");
	assert_int_equal(task_scan_start(&scan, fake_path(&f->root, "proc"), NULL), 0);
	assert_int_equal(task_scan_step(&scan, &f->writer), 0);
	assert_null(scan.processes);
	assert_int_equal(read_tasks(f, &t), 3);
	assert_int_equal(t->origin, 0);
	for (size_t i = 0; i < t->n_tasks; i++) {
		const Traced__Capture__Task *task = t->tasks[i];

		if (task->tid == 10) {
			main_seen = true;
			assert_int_equal(task->tgid, 10);
			assert_int_equal(task->uid, 1000);
			assert_int_equal(task->ppid, 1);
			assert_int_equal(task->cmdline.len, 9);
			assert_memory_equal(task->cmdline.data, "/bin/x\0-y", 9);
		} else if (task->tid == 11) {
			thread_seen = true;
			assert_int_equal(task->tgid, 10);
			assert_int_equal(task->comm.len, 6);
			assert_memory_equal(task->comm.data, "worker", 6);
			assert_int_equal(task->cmdline.len, 0);
			assert_false(task->kthread);
		} else {
			kthread_seen = true;
			assert_true(task->kthread);
		}
	}
	assert_true(main_seen && thread_seen && kthread_seen);
	traced__capture__tasks__free_unpacked(t, NULL);
}

/* It is renamed while it is read: by what is said of the time the new name has to be the later. */
static void a_reading_is_dated_before_it(void **state)
{
	struct fixture *f = *state;
	uint64_t *renamed = mmap(NULL, sizeof(*renamed), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct task_scan scan;
	Traced__Capture__Tasks *t;
	pid_t pid;

	add_task(f, 10, 10, "main", 0);
	assert_int_equal(unlink(fake_path(&f->root, "proc/10/status")), 0);
	assert_int_equal(mkfifo(fake_path(&f->root, "proc/10/status"), 0600), 0);
	pid = fork();
	if (!pid) {
		int fd = open(fake_path(&f->root, "proc/10/status"), O_WRONLY);

		*renamed = now_ns(CLOCK_BOOTTIME);
		_exit(write_full(fd, "Uid:\t0\n", 7) < 0);
	}
	assert_int_equal(task_scan_start(&scan, fake_path(&f->root, "proc"), NULL), 0);
	assert_int_equal(task_scan_step(&scan, &f->writer), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(read_tasks(f, &t), 1);
	assert_true(t->boot_ns && t->boot_ns < *renamed);
	traced__capture__tasks__free_unpacked(t, NULL);
	munmap(renamed, sizeof(*renamed));
}

static void long_scan_comes_in_slices(void **state)
{
	struct fixture *f = *state;
	struct task_scan scan;
	Traced__Capture__Tasks *t;
	unsigned steps = 1;

	for (int i = 1; i <= 300; i++)
		add_task(f, i, i, "many", 0);
	assert_int_equal(task_scan_start(&scan, fake_path(&f->root, "proc"), NULL), 0);
	while (task_scan_step(&scan, &f->writer) > 0)
		steps++;
	assert_int_equal(steps, 3);
	assert_int_equal(read_tasks(f, &t), 300);
	traced__capture__tasks__free_unpacked(t, NULL);
}

/* The most tasks in one chunk, and how many chunks there are of type. */
static size_t largest_chunk(struct fixture *f, enum chunk_type type, unsigned *ret_count)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct stream_reader reader;
	struct chunk chunk;
	size_t largest = 0;

	*ret_count = 0;
	assert_int_equal(stream_reader_init(&reader, f->fd, NULL), 0);
	while (stream_reader_next(&reader, &chunk, NULL) > 0) {
		if (chunk.type != type)
			continue;
		assert_int_equal(stream_reader_load(&reader, &chunk, &b, NULL), 0);
		largest = MAX(largest, b.len);
		(*ret_count)++;
	}
	return largest;
}

static void scan_all(struct fixture *f, struct task_memory *m)
{
	struct task_scan scan;
	int r;

	assert_int_equal(task_scan_start(&scan, fake_path(&f->root, "proc"), m), 0);
	while ((r = task_scan_step(&scan, &f->writer)) > 0)
		;
	assert_int_equal(r, 0);
}

static void a_process_of_many_threads_is_divided(void **state)
{
	struct fixture *f = *state;
	Traced__Capture__Tasks *t;
	unsigned chunks;

	for (int i = 0; i < 1500; i++)
		add_task(f, 10, 10 + i, "thread", 0);
	scan_all(f, NULL);
	assert_int_equal(read_tasks(f, &t), 1500);
	assert_int_equal(t->tasks[0]->tgid, 10);
	traced__capture__tasks__free_unpacked(t, NULL);
	largest_chunk(f, CHUNK_TASKS, &chunks);
	assert_int_equal(chunks, 2);
}

static void a_later_scan_writes_what_is_new(void **state)
{
	struct fixture *f = *state;
	struct task_memory m = { 0 };
	Traced__Capture__Tasks *t;

	for (int i = 1; i <= 300; i++)
		add_task(f, i, i, "many", 0);
	scan_all(f, &m);
	assert_int_equal(read_tasks(f, &t), 300);
	traced__capture__tasks__free_unpacked(t, NULL);
	scan_all(f, &m);
	assert_int_equal(read_tasks(f, &t), 300);
	traced__capture__tasks__free_unpacked(t, NULL);
	add_task(f, 7, 7, "renamed", 0);
	add_task(f, 2000, 2000, "new", 0);
	scan_all(f, &m);
	assert_int_equal(read_tasks(f, &t), 302);
	assert_int_equal(t->n_tasks, 1);
	traced__capture__tasks__free_unpacked(t, NULL);
	/* Its number comes back with another life: it was forgotten, or is known to differ. */
	nftw(fake_path(&f->root, "proc/2000"), fake_root_remove, 16, FTW_DEPTH | FTW_PHYS);
	scan_all(f, &m);
	add_task(f, 2000, 2000, "new", 0x40);
	fake_file(&f->root, "proc/2000/task/2000/stat",
		  "2000 (new) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 999 1 2 3\n");
	scan_all(f, &m);
	assert_int_equal(read_tasks(f, &t), 303);
	traced__capture__tasks__free_unpacked(t, NULL);
	task_memory_deinit(&m);
}

static void what_is_remembered_is_bounded(void **state)
{
	struct fixture *f = *state;
	struct task_memory m = { 0 };

	/* Generations of tasks, all of other numbers. */
	for (int g = 0; g < 20; g++) {
		char path[64];

		for (int i = 0; i < 50; i++)
			add_task(f, 1000 * g + i + 1, 1000 * g + i + 1, "brief", 0);
		scan_all(f, &m);
		snprintf(path, sizeof(path), "proc");
		nftw(fake_path(&f->root, path), fake_root_remove, 16, FTW_DEPTH | FTW_PHYS);
	}
	assert_true(m.size <= 512);
	task_memory_deinit(&m);
}

static void many_saved_names_are_divided(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct buf text = BUF_INIT;
	Traced__Capture__Tasks *t;
	unsigned chunks;

	for (int i = 1; i <= 3000; i++)
		buf_printf(&text, "%d name\n", i);
	assert_int_equal(tasks_write_saved(buf_string(&text), &f->writer), 0);
	assert_int_equal(read_tasks(f, &t), 3000);
	assert_int_equal(t->origin, 1);
	traced__capture__tasks__free_unpacked(t, NULL);
	largest_chunk(f, CHUNK_TASKS, &chunks);
	assert_int_equal(chunks, 3);
}

/* An incomplete recording is one thing, a remark is another. */
static void only_what_is_missing_makes_a_recording_incomplete(void **state)
{
	static const struct {
		const char *text;
		bool missing;
	} notes[] = { { "symbols are hidden", false }, { "the end is missing", true } };
	struct fixture *f = *state;
	struct capture c = { .writer = f->writer };
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct stream_reader reader;
	struct chunk chunk;
	size_t n = 0;

	capture_warn(&c, "%s", notes[0].text);
	capture_warn_missing(&c, "%s", notes[1].text);
	capture_warn(&c, "%s", notes[1].text);
	assert_int_equal(capture_write_notes(&c), 0);
	assert_int_equal(stream_reader_init(&reader, f->fd, NULL), 0);
	while (stream_reader_next(&reader, &chunk, NULL) > 0) {
		Traced__Capture__Note *note;

		assert_int_equal(chunk.type, CHUNK_NOTE);
		assert_int_equal(stream_reader_load(&reader, &chunk, &b, NULL), 0);
		note = traced__capture__note__unpack(NULL, b.len, (const uint8_t *)b.data);
		assert_non_null(note);
		assert_true(n < ARRAY_SIZE(notes));
		assert_string_equal(note->text, notes[n].text);
		assert_int_equal(note->missing, notes[n++].missing);
		traced__capture__note__free_unpacked(note, NULL);
	}
	assert_int_equal(n, ARRAY_SIZE(notes));
	for (size_t i = 0; i < c.warning_count; i++)
		free(c.warnings[i]);
	free(c.warnings);
}

static void notes_keep_to_their_bounds(void **state)
{
	struct fixture *f = *state;
	struct capture c = { .writer = f->writer };
	char text[10000];
	unsigned notes;

	/* Two bytes each: a cut in the midst of one would be seen as a character that is none. */
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa4", 3);
	capture_warn(&c, "%s", text);
	capture_warn(&c, "x%s", text);
	for (int i = 0; i < 100; i++)
		capture_warn(&c, "warning %d", i);
	assert_int_equal(capture_write_notes(&c), 0);
	assert_in_range(largest_chunk(f, CHUNK_NOTE, &notes), STREAM_NOTE_MAX / 2, STREAM_NOTE_MAX);
	assert_int_equal(notes, STREAM_NOTES_MAX);
	for (size_t i = 0; i < c.warning_count; i++)
		free(c.warnings[i]);
	free(c.warnings);
}

static void saved_names(void **state)
{
	struct fixture *f = *state;
	Traced__Capture__Tasks *t;

	assert_int_equal(tasks_write_saved("1 init\n20 a b\nx y\n-3 z\n21 last", &f->writer), 0);
	assert_int_equal(read_tasks(f, &t), 3);
	assert_int_equal(t->origin, 1);
	assert_int_equal(t->tasks[1]->tid, 20);
	assert_memory_equal(t->tasks[1]->comm.data, "a b", 3);
	assert_int_equal(t->tasks[2]->comm.len, 4);
	traced__capture__tasks__free_unpacked(t, NULL);
}

static void clocks_are_bracketed(void **state)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct buf b = BUF_INIT;
	Traced__Capture__Clocks *msg;
	struct stream_reader reader;
	struct clock_snapshot s;
	struct chunk chunk;

	clocks_read(&s);
	assert_true(s.count >= 4);
	assert_int_equal(clocks_write(&s, &f->writer, CLOCK_PHASE_END), 0);
	assert_int_equal(stream_reader_init(&reader, f->fd, NULL), 0);
	assert_int_equal(stream_reader_next(&reader, &chunk, NULL), 1);
	assert_int_equal(stream_reader_load(&reader, &chunk, &b, NULL), 0);
	msg = traced__capture__clocks__unpack(NULL, b.len, (uint8_t *)b.data);
	assert_non_null(msg);
	assert_int_equal(msg->phase, 2);
	assert_int_equal(msg->n_readings, s.count);
	for (size_t i = 0; i < msg->n_readings; i++) {
		const Traced__Capture__ClockReading *r = msg->readings[i];

		assert_true(r->boot_before_ns <= r->boot_after_ns);
		if (r->clock == CLOCK_BOOTTIME)
			assert_true(r->value_ns >= r->boot_before_ns &&
				    r->value_ns <= r->boot_after_ns);
	}
	traced__capture__clocks__free_unpacked(msg, NULL);
}

static void symbols_only_where_formats_name_them(void **state _unused_)
{
	assert_true(format_wants_symbols("name: a\nprint fmt: \"%pS\", REC->ip\n"));
	assert_true(format_wants_symbols("name: a\nprint fmt: \"%p %ps\", REC->ip\n"));
	assert_false(format_wants_symbols("name: a\nprint fmt: \"%p %pI4 %s\", REC->ip\n"));
	assert_false(format_wants_symbols("name: %ps\n"));
	assert_false(format_wants_symbols(""));
}

static void constants_in_formats(void **state _unused_)
{
	static const char format[] = "name: a\n\nprint fmt: \"IN_TEXT %s\", "
				     "__print_symbolic(REC->state, { ONE, \"x\" }, { ONE, \"y\" }) "
				     "+ jiffies_to_msecs(REC->t) + REC->a.b + 'Q' + TWO_2\n";
	static const char *const wanted[] = { "HZ", "ONE", "TWO_2" };
	struct identifiers ids = { 0 };

	identifiers_collect(&ids, format);
	identifiers_collect(&ids, "name: NONE\n");
	assert_int_equal(identifiers_sort(&ids), 0);
	assert_int_equal(ids.count, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < ids.count; i++)
		assert_string_equal(ids.names[i], wanted[i]);
	identifiers_deinit(&ids);
	assert_int_equal(identifiers_sort(&ids), 0);
	assert_int_equal(ids.count, 0);
	identifiers_deinit(&ids);
}

struct found {
	unsigned formats, kallsyms, printk, tasks;
};

static struct found write_names(struct fixture *f, const char *kallsyms, bool *ret_hidden,
				bool *ret_cut)
{
	static const char *const events[] = { "x:one" };
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	struct found found = { 0 };
	struct capture_env env;
	struct stream_reader reader;
	struct names names;
	struct chunk chunk;
	char proc[128];
	int r;

	fake_file(&f->root, "events/x/one/format", "name: one\nprint fmt: \"%ps\", REC->ip\n");
	fake_file(&f->root, "events/x/two/format", "name: two\n");
	fake_file(&f->root, "events/ftrace/print/format", "name: print\n");
	fake_file(&f->root, "printk_formats", "0x1 : \"text\"\n");
	fake_file(&f->root, "proc/kallsyms", kallsyms);
	add_task(f, 1, 1, "init", 0);
	assert_int_equal(tracefs_open(&fs, f->root.path, NULL), 0);
	snprintf(proc, sizeof(proc), "%s", fake_path(&f->root, "proc"));
	env = (struct capture_env){ .tracefs = fs, .proc = proc };
	assert_int_equal(names_init(&names, &env, events, 1, false), 0);
	do {
		r = names_step(&names, &f->writer);
	} while (r > 0);
	assert_int_equal(r, 0);
	*ret_hidden = names.symbols.hidden;
	*ret_cut = names.symbols.cut;
	names_deinit(&names);
	assert_int_equal(stream_reader_init(&reader, f->fd, NULL), 0);
	while (stream_reader_next(&reader, &chunk, NULL) > 0) {
		found.formats += chunk.type == CHUNK_FORMAT;
		found.kallsyms += chunk.type == CHUNK_KALLSYMS;
		found.printk += chunk.type == CHUNK_PRINTK;
		found.tasks += chunk.type == CHUNK_TASKS;
	}
	return found;
}

/* Of the smallest BTF: a function "f" without arguments. */
static void fake_btf(struct fixture *f)
{
	static const struct {
		uint32_t header[6], types[6];
		char strings[3];
	} btf = { { 0x0001eb9f, 24, 0, 24, 24, 3 }, { 0, 13U << 24, 0, 1, 12U << 24, 1 }, "\0f" };

	fake_data(&f->root, "sys/kernel/btf/vmlinux", &btf, offsetof(typeof(btf), strings) + 3);
}

static void arguments_where_they_are_recorded(void **state)
{
	static const char *const options[] = { "print-parent\nnofunc-args\n",
					       "print-parent\nfunc-args\nmarkers\n",
					       "print-parent\nfuncgraph-args\n" };
	struct fixture *f = *state;
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	_cleanup_buf_ struct buf payload = BUF_INIT;
	unsigned chunks = 0;
	struct stream_reader reader;
	struct capture_env env;
	struct chunk chunk;
	char sys[128];

	fake_file(&f->root, "events/ftrace/print/format", "name: print\n");
	fake_btf(f);
	snprintf(sys, sizeof(sys), "%s", fake_path(&f->root, "sys"));
	assert_int_equal(tracefs_open(&fs, f->root.path, NULL), 0);
	env = (struct capture_env){ .tracefs = fs, .proc = "/nowhere", .sys = sys };
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		struct names names;

		fake_file(&f->root, "trace_options", options[i]);
		assert_int_equal(names_init(&names, &env, NULL, 0, false), 0);
		names.want_arguments = names_want_arguments(tracefs_root(fs));
		assert_int_equal(names.want_arguments, i > 0);
		names.stage = NAMES_ARGUMENTS;
		assert_int_equal(names_step(&names, &f->writer), 1);
		names_deinit(&names);
	}
	assert_int_equal(stream_reader_init(&reader, f->fd, NULL), 0);
	while (stream_reader_next(&reader, &chunk, NULL) > 0) {
		if (chunk.type != CHUNK_ARGUMENTS)
			continue;
		assert_int_equal(stream_reader_load(&reader, &chunk, &payload, NULL), 0);
		assert_string_equal(buf_string(&payload), "f\n");
		chunks++;
	}
	assert_int_equal(chunks, 2);
}

static void names_of_what_is_enabled(void **state)
{
	bool hidden, cut;
	struct found found = write_names(*state, "ffffffff81000000 T _text\n", &hidden, &cut);

	/* The one asked for and ftrace's own; not the other. */
	assert_int_equal(found.formats, 2);
	assert_int_equal(found.kallsyms, 1);
	assert_int_equal(found.printk, 1);
	assert_int_equal(found.tasks, 1);
	assert_false(hidden || cut);
}

/* How many chunks of this type there are, and what the last one says. */
static unsigned read_chunks(const struct fixture *f, unsigned type, struct buf *last)
{
	struct stream_reader reader;
	struct chunk chunk;
	unsigned n = 0;

	assert_int_equal(stream_reader_init(&reader, f->fd, NULL), 0);
	while (stream_reader_next(&reader, &chunk, NULL) > 0) {
		if (chunk.type != type)
			continue;
		n++;
		assert_int_equal(stream_reader_load(&reader, &chunk, last, NULL), 0);
	}
	return n;
}

/* Each fixture's stream has one; "": none is written. */
static void check_excerpt(const char *kallsyms, const char *excerpt)
{
	_cleanup_buf_ struct buf last = BUF_INIT;
	struct found found;
	bool hidden, cut;
	void *state;

	setup(&state);
	found = write_names(state, kallsyms, &hidden, &cut);
	assert_int_equal(found.kallsyms, !hidden);
	assert_int_equal(read_chunks(state, CHUNK_KALLSYMS_EXCERPT, &last), *excerpt ? 1 : 0);
	assert_int_equal(last.len, strlen(excerpt));
	assert_memory_equal(last.data ?: "", excerpt, last.len);
	teardown(&state);
}

static void the_symbol_of_marks_comes_first(void **state _unused_)
{
	check_excerpt("f0 T a\nf1 t tracing_mark_write\nf8 t b\nf9 t c\n",
		      "f1 t tracing_mark_write\nf8 t b\n");
	/* Not what only begins or ends so, nor a module's. */
	check_excerpt("f0 T a\nf1 t tracing_mark_write.cold\nf8 t b\n", "");
	check_excerpt("f0 T a\nf1 t my_tracing_mark_write\nf8 t b\n", "");
	check_excerpt("f0 T a\nf1 t tracing_mark_write\t[m]\nf8 t b\t[m]\n", "");
	/* The name that counts is another, or its end is not told. */
	check_excerpt("f0 T z\nf1 t a\nf1 t tracing_mark_write\nf8 t b\n", "");
	check_excerpt("f0 T a\nf1 t tracing_mark_write\nf1 t b\nf8 t c\n", "");
	check_excerpt("f0 T a\nf1 t tracing_mark_write\nf8 t b\t[m]\n", "");
	check_excerpt("f0 T a\nf1 t tracing_mark_write\ne8 t b\n", "");
	check_excerpt("f0 T a\nf1 t tracing_mark_write\n", "");
	check_excerpt("f0 T a\nf1 t tracing_mark_write\nf8 t b", "");
	check_excerpt("f1 t tracing_mark_write\nf8 t b\n", "");
	check_excerpt("00 T a\n00 t tracing_mark_write\n00 t b\n", "");
}

static void symbols_of_modules_that_come_late(void **state)
{
	static const char *const events[] = { "x:one" };
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	_cleanup_buf_ struct buf last = BUF_INIT;
	struct fixture *f = *state;
	struct capture_env env;
	struct names names;
	char proc[128];

	fake_dir(&f->root, "events");
	fake_file(&f->root, "proc/kallsyms",
		  "ffffffff81000000 T _text\n"
		  "ffffffffc0001000 t f\t[old]\n");
	fake_file(&f->root, "proc/modules", "old 4096 0 - Live 0xffffffffc0001000\n");
	assert_int_equal(tracefs_open(&fs, f->root.path, NULL), 0);
	snprintf(proc, sizeof(proc), "%s", fake_path(&f->root, "proc"));
	env = (struct capture_env){ .tracefs = fs, .proc = proc };
	assert_int_equal(names_init(&names, &env, events, 1, true), 0);
	assert_int_equal(names_update(&names, &f->writer), 0);
	assert_int_equal(read_chunks(f, CHUNK_KALLSYMS, &last), 0);
	while (names_step(&names, &f->writer) > 0)
		;
	/* In use by somebody now: the same modules. */
	fake_file(&f->root, "proc/modules", "old 4096 1 x, Live 0xffffffffc0001000\n");
	assert_int_equal(names_update(&names, &f->writer), 0);
	assert_int_equal(read_chunks(f, CHUNK_KALLSYMS, &last), 1);

	fake_file(&f->root, "proc/modules",
		  "new 8192 0 - Live 0xffffffffc0005000\n"
		  "old 4096 0 - Live 0xffffffffc0001000\n");
	fake_file(&f->root, "proc/kallsyms",
		  "ffffffff81000000 T _text\n"
		  "ffffffffc0001000 t f\t[old]\n"
		  "ffffffffc0005000 t g\t[new]\n");
	assert_int_equal(names_update(&names, &f->writer), 0);
	assert_int_equal(read_chunks(f, CHUNK_KALLSYMS, &last), 2);
	assert_string_equal(buf_string(&last), "ffffffffc0005000 t g\t[new]\n");
	/* Once. */
	assert_int_equal(names_update(&names, &f->writer), 0);
	assert_int_equal(read_chunks(f, CHUNK_KALLSYMS, &last), 2);
	/* One goes, and comes back elsewhere. */
	fake_file(&f->root, "proc/modules", "new 8192 0 - Live 0xffffffffc0005000\n");
	assert_int_equal(names_update(&names, &f->writer), 0);
	assert_int_equal(read_chunks(f, CHUNK_KALLSYMS, &last), 2);
	fake_file(&f->root, "proc/modules",
		  "new 8192 0 - Live 0xffffffffc0005000\n"
		  "old 4096 0 - Live 0xffffffffc0009000\n");
	fake_file(&f->root, "proc/kallsyms",
		  "ffffffff81000000 T _text\n"
		  "ffffffffc0005000 t g\t[new]\n"
		  "ffffffffc0009000 t f\t[old]\n");
	assert_int_equal(names_update(&names, &f->writer), 0);
	assert_int_equal(read_chunks(f, CHUNK_KALLSYMS, &last), 3);
	assert_string_equal(buf_string(&last), "ffffffffc0009000 t f\t[old]\n");
	names_deinit(&names);
}

static void more_symbols_than_a_stream_holds_are_cut(void **state)
{
	static const char line[] = "ffffffff81000000 T symbol_of_some_length\n";
	_cleanup_buf_ struct buf text = BUF_INIT;
	bool hidden, cut;
	unsigned chunks;
	size_t len;

	while (text.len <= STREAM_KALLSYMS_MAX)
		buf_append(&text, line, strlen(line));
	assert_int_equal(write_names(*state, buf_string(&text), &hidden, &cut).kallsyms, 1);
	assert_true(cut);
	len = largest_chunk(*state, CHUNK_KALLSYMS, &chunks);
	assert_in_range(len, STREAM_KALLSYMS_MAX - strlen(line), STREAM_KALLSYMS_MAX);
	assert_int_equal(len % strlen(line), 0);
}

static void hidden_symbols_are_noticed(void **state)
{
	bool hidden, cut;
	struct found found = write_names(
		*state, "0000000000000000 A first\n0000000000000000 T _text\n", &hidden, &cut);

	assert_int_equal(found.kallsyms, 0);
	assert_true(hidden);
}

static void per_cpu_symbols_count_from_zero(void **state)
{
	bool hidden, cut;
	struct found found = write_names(
		*state, "0000000000000000 A fixed_percpu_data\n0000000000020208 A other\n", &hidden,
		&cut);

	assert_int_equal(found.kallsyms, 1);
	assert_false(hidden);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_lines),
		cmocka_unit_test(constants_in_formats),
		cmocka_unit_test(symbols_only_where_formats_name_them),
		TEST(scan_finds_threads),
		TEST(a_reading_is_dated_before_it),
		TEST(long_scan_comes_in_slices),
		TEST(a_process_of_many_threads_is_divided),
		TEST(a_later_scan_writes_what_is_new),
		TEST(what_is_remembered_is_bounded),
		TEST(saved_names),
		TEST(many_saved_names_are_divided),
		TEST(only_what_is_missing_makes_a_recording_incomplete),
		TEST(notes_keep_to_their_bounds),
		TEST(clocks_are_bracketed),
		TEST(arguments_where_they_are_recorded),
		TEST(names_of_what_is_enabled),
		cmocka_unit_test(the_symbol_of_marks_comes_first),
		TEST(symbols_of_modules_that_come_late),
		TEST(more_symbols_than_a_stream_holds_are_cut),
		TEST(hidden_symbols_are_noticed),
		TEST(per_cpu_symbols_count_from_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
