/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names that a reader of the stream needs: formats, constants, symbols. */
#include <string.h>

#include "daemon/capture/names/identifiers.h"
#include "daemon/capture/names/names.h"
#include "fake_capture.h"

static void symbols_only_where_formats_name_them(void **state _unused_)
{
	assert_true(format_wants_symbols("name: a\nprint fmt: \"%pS\", REC->ip\n"));
	assert_true(format_wants_symbols("name: a\nprint fmt: \"%p %ps\", REC->ip\n"));
	assert_false(format_wants_symbols("name: a\nprint fmt: \"%p %pI4 %s\", REC->ip\n"));
	assert_true(format_wants_symbols("name: a\nprint fmt: \"%%%-20ps\", REC->ip\n"));
	assert_false(format_wants_symbols("name: a\nprint fmt: \"%%ps %d%%\", REC->ip\n"));
	assert_true(format_wants_symbols("name: p\nprint fmt: \"(%lx)\", REC->__probe_ip\n"));
	assert_true(format_wants_symbols("name: s\nprint fmt: \"%s\", __get_stacktrace(s)\n"));
	assert_false(format_wants_symbols("name: %ps\n"));
	assert_false(format_wants_symbols(""));
}

static void constants_in_formats(void **state _unused_)
{
	static const char format[] = "name: a\n\nprint fmt: \"IN_TEXT %s\", "
				     "__print_symbolic(REC->state, { ONE, \"x\" }, { ONE, \"y\" }) "
				     "+ jiffies_to_msecs(REC->t) + REC->a.b + 'Q' + TWO_2, "
				     "__get_str(comm), (unsigned long)REC->x, *(u64 *)REC\n";
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

/* proc: room for its name. */
static struct capture_env open_fake(struct fake_capture *f, struct tracefs **fs, char proc[128])
{
	assert_int_equal(tracefs_open(fs, f->root.path, NULL), 0);
	snprintf(proc, 128, "%s", fake_path(&f->root, "proc"));
	return (struct capture_env){ .tracefs = *fs, .proc = proc };
}

struct found {
	unsigned formats, kallsyms, printk, tasks;
};

static struct found write_names(struct fake_capture *f, const char *kallsyms, bool *ret_hidden,
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
	fake_task(f, 1, 1, "init", 0);
	env = open_fake(f, &fs, proc);
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

/* The smallest BTF: a function "f" without arguments. */
static void fake_btf(struct fake_capture *f)
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
	struct fake_capture *f = *state;
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
		assert_int_equal(names_see_options(&names, tracefs_root(fs)), 0);
		assert_int_equal(names.want_arguments, i > 0);
		assert_false(names.all_symbols);
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

	/* The requested one and ftrace's own, but no other. */
	assert_int_equal(found.formats, 2);
	assert_int_equal(found.kallsyms, 1);
	assert_int_equal(found.printk, 1);
	assert_int_equal(found.tasks, 1);
	assert_false(hidden || cut);
}

/* Each fixture's stream has one; "": none is written. */
static void check_excerpt(const char *kallsyms, const char *excerpt)
{
	_cleanup_buf_ struct buf last = BUF_INIT;
	struct found found;
	bool hidden, cut;
	void *state;

	fake_capture_setup(&state);
	found = write_names(state, kallsyms, &hidden, &cut);
	assert_int_equal(found.kallsyms, !hidden);
	assert_int_equal(fake_capture_chunks(state, CHUNK_KALLSYMS_EXCERPT, &last, NULL),
			 *excerpt ? 1 : 0);
	assert_int_equal(last.len, strlen(excerpt));
	assert_memory_equal(last.data ?: "", excerpt, last.len);
	fake_capture_teardown(&state);
}

static void the_symbol_of_marks_comes_first(void **state _unused_)
{
	check_excerpt("f0 T a\nf1 t tracing_mark_write\nf8 t b\nf9 t c\n",
		      "f1 t tracing_mark_write\nf8 t b\n");
	/* Neither a name that only begins or ends so, nor a module's. */
	check_excerpt("f0 T a\nf1 t tracing_mark_write.cold\nf8 t b\n", "");
	check_excerpt("f0 t tracing_mark_write.cold\nf1 t tracing_mark_write\nf8 t b\n",
		      "f1 t tracing_mark_write\nf8 t b\n");
	/* This part of the function may be the one that writes marks. */
	check_excerpt("f0 t tracing_mark_write.part.0\nf1 t tracing_mark_write\nf8 t b\n", "");
	check_excerpt("f0 T a\nf1 t tracing_mark_write\nf8 t tracing_mark_write.part.0\n", "");
	check_excerpt("f0 T a\nf1 t my_tracing_mark_write\nf8 t b\n", "");
	check_excerpt("f0 T a\nf1 t tracing_mark_write\t[m]\nf8 t b\t[m]\n", "");
	/* Another name of that address counts, or the function's end is unknown. */
	check_excerpt("f0 T z\nf1 t a\nf1 t tracing_mark_write\nf8 t b\n", "");
	check_excerpt("f0 T a\nf1 t tracing_mark_write\nf1 t b\nf8 t c\n", "");
	check_excerpt("f0 T a\nf1 t tracing_mark_write\nf8 t b\t[m]\n", "");
	check_excerpt("f0 T a\nf1 t tracing_mark_write\ne8 t b\n", "");
	check_excerpt("f0 T a\nf1 t tracing_mark_write\n", "");
	check_excerpt("f0 T a\nf1 t tracing_mark_write\nf8 t b", "");
	check_excerpt("f1 t tracing_mark_write\nf8 t b\n", "");
	check_excerpt("00 T a\n00 t tracing_mark_write\n00 t b\n", "");
}

#define MARKS_AND_MORE "f0 T a\nf1 t tracing_mark_write\nf8 t b\nf9 t c\n"

struct symbols_case {
	const char *print_fmt; /* of the only event; NULL: it names no symbol */
	const char *options;   /* of the ring; NULL: they can't be read */
	const char *kallsyms;  /* NULL: the symbol of marks, and others */
	bool all_wanted;
	bool all, excerpt; /* written to the stream */
};

static void check_symbols(const struct symbols_case *is)
{
	static const char *const events[] = { "x:one" };
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	_cleanup_buf_ struct buf last = BUF_INIT;
	struct capture_env env;
	char text[256], proc[128];
	struct fake_capture *f;
	struct names names;
	void *state;

	fake_capture_setup(&state);
	f = state;
	snprintf(text, sizeof(text), "name: one\nprint fmt: %s\n",
		 is->print_fmt ?: "\"%d\", REC->a");
	fake_file(&f->root, "events/x/one/format", text);
	fake_file(&f->root, "events/ftrace/print/format",
		  "name: print\nprint fmt: \"%ps: %s\", (void *)REC->ip, REC->buf\n");
	if (is->options)
		fake_file(&f->root, "trace_options", is->options);
	fake_file(&f->root, "proc/kallsyms", is->kallsyms ?: MARKS_AND_MORE);
	fake_task(f, 1, 1, "init", 0);
	env = open_fake(f, &fs, proc);
	assert_int_equal(names_init(&names, &env, events, 1, is->all_wanted), 0);
	assert_int_equal(names_see_options(&names, tracefs_root(fs)), 0);
	while (names_step(&names, &f->writer) > 0)
		;
	/* Without other symbols a module's are not needed. */
	fake_file(&f->root, "proc/modules", "new 8192 0 - Live 0xffffffffc0005000\n");
	fake_file(&f->root, "proc/kallsyms", "ffffffffc0005000 t g\t[new]\n");
	assert_int_equal(names_update(&names, &f->writer), 0);
	names_deinit(&names);
	assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS, &last, NULL), is->all ? 2 : 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS_EXCERPT, &last, NULL),
			 is->excerpt ? 1 : 0);
	if (is->excerpt)
		assert_string_equal(buf_string(&last), "f1 t tracing_mark_write\nf8 t b\n");
	fake_capture_teardown(&state);
}

static void the_symbol_of_marks_alone(void **state _unused_)
{
	static const struct symbols_case cases[] = {
		{ .options = "markers\n", .excerpt = true },
		/* Stacks of programs name no kernel symbols. */
		{ .options = "nostacktrace\nuserstacktrace\n", .excerpt = true },
		{ .options = "markers\n",
		  .print_fmt = "\"%pS\", REC->a",
		  .all = true,
		  .excerpt = true },
		{ .options = "markers\n", .all_wanted = true, .all = true, .excerpt = true },
		{ .options = "stacktrace\nmarkers\n", .all = true, .excerpt = true },
		{ .options = NULL, .all = true, .excerpt = true },
		/* The symbol is among them, perhaps under another name. */
		{ .options = "markers\n", .kallsyms = "f0 T a\nf1 t b\n", .all = true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_symbols(&cases[i]);
}

/* The daemon's later recordings read no symbols for marks; those that need all symbols do. */
static void the_symbol_of_marks_is_remembered(void **state)
{
	static const char *const events[] = { "x:one" };
	struct fake_capture *f = *state;
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	_cleanup_buf_ struct buf last = BUF_INIT;
	struct excerpt_memory memory = { 0 };
	struct capture_env env;
	char proc[128];

	fake_file(&f->root, "events/x/one/format", "name: one\nID: 301\nprint fmt: \"a\"\n");
	fake_file(&f->root, "events/ftrace/print/format", "name: print\n");
	fake_task(f, 1, 1, "init", 0);
	env = open_fake(f, &fs, proc);
	env.excerpt = &memory;
	for (unsigned i = 0; i < 3; i++) {
		_cleanup_(names_deinit) struct names names;
		bool all = i == 2;

		fake_file(&f->root, "proc/kallsyms", i == 1 ? "" : MARKS_AND_MORE);
		assert_int_equal(names_init(&names, &env, events, 1, all), 0);
		while (names_step(&names, &f->writer) > 0)
			;
		assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS_EXCERPT, &last, NULL),
				 i + 1);
		assert_string_equal(buf_string(&last), "f1 t tracing_mark_write\nf8 t b\n");
		assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS, NULL, NULL), all);
	}
}

/* At any distance from the end of what one step reads. */
static void the_symbol_of_marks_between_steps(void **state _unused_)
{
	static const char filler[] = "f0 T a\n", wanted[] = "f1 t tracing_mark_write\nf8 t b\n";
	const size_t step = KERNEL_SYMBOLS_STEP;

	for (size_t before = 1; before < sizeof(wanted); before++) {
		_cleanup_buf_ struct buf text = BUF_INIT;

		while (text.len + 2 * strlen(filler) <= step - before)
			buf_puts(&text, filler);
		buf_printf(&text, "%0*x T a\n", (int)(step - before - text.len - 5), 0xf0);
		assert_int_equal(text.len, step - before);
		buf_puts(&text, wanted);
		while (text.len < 2 * step)
			buf_puts(&text, "f9 t c\n");
		check_symbols(&(struct symbols_case){
			.options = "markers\n", .kallsyms = buf_string(&text), .excerpt = true });
	}
}

#define FORMAT_OF_SYMBOLS(name, id)                                                                \
	"name: " name "\nID: " id "\nformat:\n\nprint fmt: \"%pS\", REC->ip\n"

/* All symbols are written once an event that names some was seen, however late. */
static void symbols_of_events_that_were_seen(void **state)
{
	static const char *const events[] = { "x:one", "x:two" };
	static const uint16_t of_symbols[] = { 302, 4 };
	struct fake_capture *f = *state;
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	struct capture_env env;
	char proc[128];

	fake_file(&f->root, "events/x/one/format", "name: one\nID: 301\nprint fmt: \"a\"\n");
	fake_file(&f->root, "events/x/two/format", FORMAT_OF_SYMBOLS("two", "302"));
	fake_file(&f->root, "events/ftrace/kernel_stack/format",
		  FORMAT_OF_SYMBOLS("kernel_stack", "4"));
	fake_file(&f->root, "events/ftrace/print/format", FORMAT_OF_SYMBOLS("print", "5"));
	fake_file(&f->root, "proc/kallsyms", MARKS_AND_MORE);
	fake_task(f, 1, 1, "init", 0);
	env = open_fake(f, &fs, proc);
	for (size_t i = 0; i < ARRAY_SIZE(of_symbols); i++) {
		_cleanup_(names_deinit) struct names names;
		struct seen_events seen = { 0 };

		assert_int_equal(names_init(&names, &env, events, 2, false), 0);
		names.seen = &seen;
		event_set_add(&seen.events, 301);
		event_set_add(&seen.events, 5);
		while (names_step(&names, &f->writer) > 0)
			;
		assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS, NULL, NULL), i);
		assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS_EXCERPT, NULL, NULL), i + 1);
		assert_false(names_lack_symbols(&names));
		assert_false(seen.off);

		event_set_add(&seen.events, of_symbols[i]);
		assert_true(names_lack_symbols(&names));
		while (names_step(&names, &f->writer) > 0)
			;
		assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS, NULL, NULL), i + 1);
		assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS_EXCERPT, NULL, NULL), i + 1);
		assert_false(names_lack_symbols(&names));
		assert_true(seen.off);
	}
}

/* If no event can name symbols, nothing is searched. */
static void symbols_that_no_event_names(void **state)
{
	static const char *const events[] = { "x:one" };
	struct fake_capture *f = *state;
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	_cleanup_(names_deinit) struct names names;
	struct seen_events seen = { .any = true };
	struct capture_env env;
	char proc[128];

	fake_file(&f->root, "events/x/one/format", "name: one\nID: 301\nprint fmt: \"a\"\n");
	fake_file(&f->root, "events/ftrace/kernel_stack/format",
		  FORMAT_OF_SYMBOLS("kernel_stack", "4"));
	fake_file(&f->root, "proc/kallsyms", MARKS_AND_MORE);
	fake_task(f, 1, 1, "init", 0);
	env = open_fake(f, &fs, proc);
	assert_int_equal(names_init(&names, &env, events, 1, false), 0);
	names.seen = &seen;
	names.symbols_wait = true;
	while (names_step(&names, &f->writer) > 0)
		;
	assert_true(seen.off);
	names.symbols_wait = false;
	while (names_step(&names, &f->writer) > 0)
		;
	assert_false(names_lack_symbols(&names));
	assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS, NULL, NULL), 0);
}

/* Symbols that are read at the end lack those of modules that left meanwhile. */
static void modules_that_are_gone(void **state)
{
	static const char *const events[] = { "x:one" };
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	_cleanup_(names_deinit) struct names names;
	_cleanup_buf_ struct buf gone = BUF_INIT;
	struct fake_capture *f = *state;
	struct capture_env env;
	char proc[128];

	fake_dir(&f->root, "events");
	fake_file(&f->root, "proc/kallsyms", "ffffffff81000000 T _text\n");
	fake_file(&f->root, "proc/modules",
		  "left 4096 0 - Live 0xffffffffc0001000\n"
		  "stays 4096 0 - Live 0xffffffffc0003000\n");
	fake_task(f, 1, 1, "init", 0);
	env = open_fake(f, &fs, proc);
	assert_int_equal(names_init(&names, &env, events, 1, true), 0);
	names.symbols_wait = true;
	while (names_step(&names, &f->writer) > 0)
		;
	assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS, NULL, NULL), 0);
	assert_false(names_lack_symbols(&names));
	fake_file(&f->root, "proc/modules", "stays 4096 0 - Live 0xffffffffc0003000\n");
	names.symbols_wait = false;
	assert_true(names_lack_symbols(&names));
	while (names_step(&names, &f->writer) > 0)
		;
	assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS, NULL, NULL), 1);
	assert_int_equal(kernel_symbols_find_gone(&names.symbols, &gone), 0);
	assert_string_equal(buf_string(&gone), "[left]\n");
}

static void symbols_of_modules_that_come_late(void **state)
{
	static const char *const events[] = { "x:one" };
	_cleanup_(tracefs_freep) struct tracefs *fs = NULL;
	_cleanup_buf_ struct buf last = BUF_INIT;
	struct fake_capture *f = *state;
	struct capture_env env;
	struct names names;
	char proc[128];

	fake_dir(&f->root, "events");
	fake_file(&f->root, "proc/kallsyms",
		  "ffffffff81000000 T _text\n"
		  "ffffffffc0001000 t f\t[old]\n");
	fake_file(&f->root, "proc/modules", "old 4096 0 - Live 0xffffffffc0001000\n");
	env = open_fake(f, &fs, proc);
	assert_int_equal(names_init(&names, &env, events, 1, true), 0);
	assert_int_equal(names_update(&names, &f->writer), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS, &last, NULL), 0);
	while (names_step(&names, &f->writer) > 0)
		;
	/* Another process uses the file: the modules stay the same. */
	fake_file(&f->root, "proc/modules", "old 4096 1 x, Live 0xffffffffc0001000\n");
	assert_int_equal(names_update(&names, &f->writer), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS, &last, NULL), 1);

	fake_file(&f->root, "proc/modules",
		  "new 8192 0 - Live 0xffffffffc0005000\n"
		  "old 4096 0 - Live 0xffffffffc0001000\n");
	fake_file(&f->root, "proc/kallsyms",
		  "ffffffff81000000 T _text\n"
		  "ffffffffc0001000 t f\t[old]\n"
		  "ffffffffc0005000 t g\t[new]\n");
	assert_int_equal(names_update(&names, &f->writer), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS, &last, NULL), 2);
	assert_string_equal(buf_string(&last), "ffffffffc0005000 t g\t[new]\n");
	/* It is written once. */
	assert_int_equal(names_update(&names, &f->writer), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS, &last, NULL), 2);
	/* A module is unloaded, then loaded elsewhere. */
	fake_file(&f->root, "proc/modules", "new 8192 0 - Live 0xffffffffc0005000\n");
	assert_int_equal(names_update(&names, &f->writer), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS, &last, NULL), 2);
	fake_file(&f->root, "proc/modules",
		  "new 8192 0 - Live 0xffffffffc0005000\n"
		  "old 4096 0 - Live 0xffffffffc0009000\n");
	fake_file(&f->root, "proc/kallsyms",
		  "ffffffff81000000 T _text\n"
		  "ffffffffc0005000 t g\t[new]\n"
		  "ffffffffc0009000 t f\t[old]\n");
	assert_int_equal(names_update(&names, &f->writer), 0);
	assert_int_equal(fake_capture_chunks(f, CHUNK_KALLSYMS, &last, NULL), 3);
	assert_string_equal(buf_string(&last), "ffffffffc0009000 t f\t[old]\n");
	names_deinit(&names);
}

static void more_symbols_than_a_stream_holds_are_cut(void **state)
{
	static const char line[] = "ffffffff81000000 T symbol_of_some_length\n";
	_cleanup_buf_ struct buf text = BUF_INIT;
	bool hidden, cut;
	size_t len;

	while (text.len <= STREAM_KALLSYMS_MAX)
		buf_append(&text, line, strlen(line));
	assert_int_equal(write_names(*state, buf_string(&text), &hidden, &cut).kallsyms, 1);
	assert_true(cut);
	fake_capture_chunks(*state, CHUNK_KALLSYMS, NULL, &len);
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
#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_capture_setup, fake_capture_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants_in_formats),
		cmocka_unit_test(symbols_only_where_formats_name_them),
		TEST(arguments_where_they_are_recorded),
		TEST(names_of_what_is_enabled),
		cmocka_unit_test(the_symbol_of_marks_comes_first),
		TEST(the_symbol_of_marks_is_remembered),
		cmocka_unit_test(the_symbol_of_marks_alone),
		cmocka_unit_test(the_symbol_of_marks_between_steps),
		TEST(symbols_of_events_that_were_seen),
		TEST(symbols_that_no_event_names),
		TEST(modules_that_are_gone),
		TEST(symbols_of_modules_that_come_late),
		TEST(more_symbols_than_a_stream_holds_are_cut),
		TEST(hidden_symbols_are_noticed),
		TEST(per_cpu_symbols_count_from_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
