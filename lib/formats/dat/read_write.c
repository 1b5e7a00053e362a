/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes the capture stream of a trace.dat. */
#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "export/reader.h"
#include "formats/dat/reader.h"
#include "proto/capture.pb-c.h"
#include "stream/excerpt.h"
#include "trace/page.h"

/* Limit of the stream's loader, for a format after its system name. */
#define FORMAT_MAX (256U << 10)
/* Limits the size of a message. */
#define TASKS_PER_CHUNK 1024
/* Sub-buffers per CPU examined to find the tracer. */
#define PEEK_PAGES 4

struct writing {
	struct dat *d;
	struct stream_writer *w;
	struct buf scratch;
	/* Ids of ftrace's own events; -1: none. */
	int function, graph_entry, graph_exit;
	const char *tracer;
	XXH128_hash_t seed;
};

static int import_cant_write(int r, struct error *err)
{
	return r < 0 ? error_errno(err, r, "can't keep the recording's events") : 0;
}

/* Opens a part. 1; 0: the file has none. */
static int import_open_part(const struct dat *d, enum dat_part part, const char *what,
			    struct dat_cursor *ret, struct buf *memory, struct error *err)
{
	int r;

	if (!d->parts[part])
		return 0;
	if (d->version == 6) {
		dat_cursor_file(ret, d, d->parts[part], what);
		return 1;
	}
	r = dat_cursor_section(ret, d, d->parts[part], DAT_OPTION_PARTS + part, what, memory, err);
	return r < 0 ? r : 1;
}

/* Number after `key` at the start of a line. */
static int import_line_number(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p ? atoi(p + strlen(key)) : -1;
}

static void import_learn_ftrace(struct writing *x, const char *text)
{
	int id = import_line_number(text, "\nID:");

	if (strncmp(text, "name: function\n", 15) == 0)
		x->function = id;
	else if (strncmp(text, "name: funcgraph_entry\n", 22) == 0)
		x->graph_entry = id;
	else if (strncmp(text, "name: funcgraph_exit\n", 21) == 0)
		x->graph_exit = id;
}

/* write: false: only looks for the tracers' event ids. */
static int import_take_format(struct writing *x, struct dat_cursor *c, const char *system,
			      bool write, struct error *err)
{
	size_t head = strlen(system) + 1;
	uint64_t size;
	int r;

	r = dat_u64(c, &size, err);
	if (r < 0)
		return r;
	if (size > FORMAT_MAX) {
		if (write)
			dat_note(&x->d->gaps, "an event format of %s is too long", system);
		return dat_skip(c, size, err);
	}
	buf_clear(&x->scratch);
	buf_append(&x->scratch, system, head);
	r = dat_append(c, size, &x->scratch, err);
	if (r < 0)
		return r;
	if (!buf_string(&x->scratch))
		return import_cant_write(-ENOMEM, err);
	if (!write)
		import_learn_ftrace(x, x->scratch.data + head);
	else if (size)
		r = stream_write(x->w, CHUNK_FORMAT, x->scratch.data, x->scratch.len);
	return import_cant_write(r, err);
}

static int import_take_ftrace(struct writing *x, bool write, struct error *err)
{
	_cleanup_buf_ struct buf memory = BUF_INIT;
	struct dat_cursor c;
	uint32_t count;
	int r = import_open_part(x->d, DAT_FTRACE_FORMATS, "ftrace's formats", &c, &memory, err);

	if (r <= 0)
		return r;
	r = dat_u32(&c, &count, err);
	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = import_take_format(x, &c, "ftrace", write, err);
	return r;
}

static int import_write_formats(struct writing *x, struct error *err)
{
	_cleanup_buf_ struct buf memory = BUF_INIT;
	uint32_t systems, count;
	struct dat_cursor c;
	int r = import_open_part(x->d, DAT_FORMATS, "event formats", &c, &memory, err);

	if (r <= 0)
		return r;
	r = dat_u32(&c, &systems, err);
	for (uint32_t i = 0; r == 0 && i < systems; i++) {
		char system[256];

		r = dat_string(&c, system, sizeof(system), err);
		if (r == 0)
			r = dat_u32(&c, &count, err);
		for (uint32_t k = 0; r == 0 && k < count; k++)
			r = import_take_format(x, &c, system, true, err);
	}
	return r;
}

/* Loads a part that is one text after its length. */
static int import_load_text(struct writing *x, enum dat_part part, const char *what, uint64_t max,
			    struct error *err)
{
	_cleanup_buf_ struct buf memory = BUF_INIT;
	struct dat_cursor c;
	uint32_t len32 = 0;
	uint64_t len;
	int r;

	buf_clear(&x->scratch);
	r = import_open_part(x->d, part, what, &c, &memory, err);
	if (r <= 0)
		return r;
	if (part == DAT_CMDLINES) {
		r = dat_u64(&c, &len, err);
	} else {
		r = dat_u32(&c, &len32, err);
		len = len32;
	}
	if (r < 0)
		return r;
	if (len > max)
		dat_note(&x->d->gaps, "its %s are longer than is taken: the last ones are left out",
			 what);
	return dat_append(&c, MIN(len, max), &x->scratch, err);
}

/* Uncompressed, like all texts here: the reader needs it at once. */
static int import_write_printk(struct writing *x, struct error *err)
{
	int r = import_load_text(x, DAT_PRINTK, "printk formats", STREAM_TASKS_MAX, err);

	if (r < 0 || !x->scratch.len)
		return r;
	return import_cant_write(stream_write(x->w, CHUNK_PRINTK, x->scratch.data, x->scratch.len),
				 err);
}

/* Only the excerpt may have been written: its last line is incomplete. */
static int import_write_symbols(struct writing *x, struct error *err)
{
	int r = import_load_text(x, DAT_KALLSYMS, "kernel symbols", STREAM_KALLSYMS_MAX, err);

	if (r < 0 || !x->scratch.len)
		return r;
	return import_cant_write(stream_write(x->w,
					      is_excerpt(x->scratch.data, x->scratch.len)
						      ? CHUNK_KALLSYMS_EXCERPT
						      : CHUNK_KALLSYMS,
					      x->scratch.data, x->scratch.len),
				 err);
}

/* Lines "PID NAME", as in saved_cmdlines. */
static int import_write_tasks(struct writing *x, struct error *err)
{
	Traced__Capture__Task tasks[TASKS_PER_CHUNK], *all[TASKS_PER_CHUNK];
	Traced__Capture__Tasks message = TRACED__CAPTURE__TASKS__INIT;
	char *line, *next;
	int r = import_load_text(x, DAT_CMDLINES, "task names", STREAM_TASKS_MAX, err);

	if (r < 0 || !x->scratch.len)
		return r;
	if (!buf_string(&x->scratch))
		return import_cant_write(-ENOMEM, err);
	message.origin = 1;
	message.tasks = all;
	for (line = x->scratch.data; r == 0 && line && *line; line = next) {
		Traced__Capture__Task *t = &tasks[message.n_tasks];
		char *name, *end = strchr(line, '\n');

		next = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		traced__capture__task__init(t);
		t->tid = (int32_t)strtol(line, &name, 10);
		if (name > line && *name == ' ' && t->tid > 0) {
			t->comm.data = (uint8_t *)name + 1;
			t->comm.len = strlen(name + 1);
			all[message.n_tasks++] = t;
		}
		if (message.n_tasks == TASKS_PER_CHUNK || (message.n_tasks && !(next && *next))) {
			r = stream_write_message(x->w, CHUNK_TASKS, &message.base);
			message.n_tasks = 0;
		}
	}
	return import_cant_write(r, err);
}

/* The file does not name the tracer: its records show it. */
static void import_peek_page(struct writing *x, const uint8_t *page)
{
	const struct subbuf_layout *l = &x->d->layout;
	const struct page_layout layout = {
		.word_size = (uint8_t)x->d->word_size,
		.big_endian = x->d->big_endian,
		.subbuf_size = l->size,
		.timestamp_offset = l->timestamp_offset,
		.commit_offset = l->commit_offset,
		.commit_size = l->commit_size,
		.data_offset = l->data_offset,
	};
	struct page_iter it;
	struct record rec;

	if (page_iter_init(&it, &layout, page, l->size) < 0)
		return;
	while (page_iter_next(&it, &rec) > 0) {
		int id = rec.len >= 2 ? load_u16(rec.data, layout.big_endian) : -1;

		if (id < 0)
			continue;
		if (id == x->graph_entry || id == x->graph_exit)
			x->tracer = "function_graph";
		else if (id == x->function && strcmp(x->tracer, "nop") == 0)
			x->tracer = "function";
	}
}

/*
 * The stream needs a key to hash pointers; the file has none. Derive it from the file's content, so
 * that each conversion shows the same values.
 */
static int import_peek(struct writing *x, struct error *err)
{
	const struct dat *d = x->d;

	for (size_t i = 0; i < d->buffer_count; i++) {
		const struct dat_buffer *b = &d->buffers[i];

		for (size_t k = 0; b->chosen && k < b->cpu_count; k++) {
			struct dat_run run;
			int r = dat_run_open(&run, d, b, &b->cpus[k], err);

			if (r == 0)
				r = dat_run_next(&run, PEEK_PAGES * d->page_size, err);
			for (size_t at = 0, n = 0; r > 0 && at < run.pages.len && n < PEEK_PAGES;
			     at += d->page_size, n++) {
				import_peek_page(x, (const uint8_t *)run.pages.data + at);
				x->seed = XXH3_128bits_withSeed(run.pages.data + at, d->page_size,
								x->seed.low64 ^ x->seed.high64);
			}
			dat_run_deinit(&run);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* "Linux NODE RELEASE MACHINE" */
static void import_fill_uname(struct dat *d, Traced__Capture__Header *h)
{
	char **const fields[] = { &h->sysname, &h->nodename, &h->release, &h->machine };
	char *save = NULL, *word = strtok_r(d->uname, " ", &save);

	for (size_t i = 0; word && i < ARRAY_SIZE(fields); i++) {
		*fields[i] = word;
		word = strtok_r(NULL, " ", &save);
	}
}

/* Buffer names, in writing order. */
static size_t import_chosen_names(struct dat *d, char *names[static BUFFER_MORE_MAX + 1])
{
	size_t n = 0;

	for (size_t i = 0; i < d->buffer_count && n <= BUFFER_MORE_MAX; i++)
		if (d->buffers[i].chosen)
			names[n++] = d->buffers[i].name;
	return n;
}

static int import_write_header(struct writing *x, struct error *err)
{
	Traced__Capture__Header h = TRACED__CAPTURE__HEADER__INIT;
	struct dat *d = x->d;
	char *names[BUFFER_MORE_MAX + 1];
	XXH128_canonical_t key;
	int r;

	import_fill_uname(d, &h);
	h.version = STREAM_VERSION;
	h.program = d->program;
	h.word_size = d->word_size;
	h.big_endian = d->big_endian;
	h.page_size = h.subbuf_size = d->page_size;
	h.cpus = h.cpus_online = d->cpus;
	/* Converted to ns, like the kernel's default clock. */
	h.trace_clock =
		d->time_mult && strcmp(d->clock, "x86-tsc") == 0 ? (char *)"local" : d->clock;
	h.tracer = (char *)(uintptr_t)x->tracer;
	h.buffers = names;
	h.n_buffers = import_chosen_names(d, names);
	h.time_mult = d->time_mult;
	h.time_shift = d->time_shift;
	h.time_offset = d->time_offset;
	XXH128_canonicalFromHash(&key, x->seed);
	h.pointer_key.data = key.digest;
	h.pointer_key.len = sizeof(key.digest);
	r = stream_write_message(x->w, CHUNK_HEADER, &h.base);
	if (r == 0)
		r = stream_write(x->w, CHUNK_HEADER_PAGE, d->header_page.data, d->header_page.len);
	return import_cant_write(r, err);
}

static int import_write_notes(struct writing *x, const struct buf *notes, bool missing,
			      struct error *err)
{
	Traced__Capture__Note note = TRACED__CAPTURE__NOTE__INIT;
	int r = buf_error(notes);

	note.missing = missing;
	for (size_t at = 0; r == 0 && at < notes->len; at += strlen(notes->data + at) + 1) {
		note.text = notes->data + at;
		r = stream_write_message(x->w, CHUNK_NOTE, &note.base);
	}
	return import_cant_write(r, err);
}

/* Compressed sub-buffers are expanded into the stream. */
static int import_write_packed(struct writing *x, struct dat_run *run, uint32_t cpu,
			       unsigned buffer, struct error *err)
{
	int r;

	while ((r = dat_run_next(run, DAT_RUN_BYTES, err)) > 0) {
		struct iovec iov = { .iov_base = run->pages.data, .iov_len = run->pages.len };

		r = import_cant_write(stream_write_subbufs(x->w, cpu, buffer, 0, &iov, 1), err);
		if (r < 0)
			return r;
	}
	return r;
}

/* Uncompressed ones stay in the file; the stream has references. */
static int import_write_places(struct writing *x, struct dat_run *run, uint32_t cpu,
			       unsigned buffer, struct error *err)
{
	uint64_t offset;
	uint32_t n;
	int r = 0;

	while (r == 0 && (n = dat_run_place(run, &offset)) > 0)
		r = import_cant_write(stream_write_elsewhere(x->w, cpu, buffer, offset, n), err);
	return r;
}

static int import_write_cpu(struct writing *x, const struct dat_buffer *b,
			    const struct dat_cpu *cpu, unsigned buffer, struct error *err)
{
	struct dat_run run;
	int r = dat_run_open(&run, x->d, b, cpu, err);

	if (r == 0)
		r = b->packed ? import_write_packed(x, &run, cpu->cpu, buffer, err)
			      : import_write_places(x, &run, cpu->cpu, buffer, err);
	if (r == 0 && run.cut)
		dat_note(&x->d->gaps,
			 "the file is cut or damaged: events of CPU %u%s%s are missing", cpu->cpu,
			 b->name[0] ? " of " : "", b->name);
	dat_run_deinit(&run);
	return r;
}

static int import_write_events(struct writing *x, struct error *err)
{
	const struct dat *d = x->d;
	unsigned buffer = BUFFER_MAIN;
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->buffer_count; i++) {
		const struct dat_buffer *b = &d->buffers[i];

		if (!b->chosen)
			continue;
		if (buffer == BUFFER_MORE + BUFFER_MORE_MAX) {
			dat_note(&x->d->gaps, "it has more buffers than are taken: %s is left out",
				 b->name);
			continue;
		}
		for (size_t k = 0; r == 0 && k < b->cpu_count; k++)
			r = import_write_cpu(x, b, &b->cpus[k], buffer, err);
		buffer = buffer == BUFFER_MAIN ? BUFFER_MORE : buffer + 1;
	}
	return r;
}

static int import_write_end(struct writing *x, struct error *err)
{
	Traced__Capture__End end = TRACED__CAPTURE__END__INIT;

	return import_cant_write(stream_write_message(x->w, CHUNK_END, &end.base), err);
}

static int import_write_stream(struct writing *x, struct error *err)
{
	int r = import_take_ftrace(x, false, err);

	if (r == 0)
		r = import_peek(x, err);
	if (r == 0)
		r = import_write_header(x, err);
	if (r == 0)
		r = import_take_ftrace(x, true, err);
	if (r == 0)
		r = import_write_formats(x, err);
	if (r == 0)
		r = import_write_symbols(x, err);
	if (r == 0)
		r = import_write_printk(x, err);
	if (r == 0)
		r = import_write_tasks(x, err);
	if (r == 0)
		r = import_write_events(x, err);
	if (r == 0)
		r = import_write_notes(x, &x->d->notes, false, err);
	if (r == 0)
		r = import_write_notes(x, &x->d->gaps, true, err);
	return r == 0 ? import_write_end(x, err) : r;
}

static int dat_write(struct dat *d, struct stream_writer *w, struct error *err)
{
	struct writing x = {
		.d = d,
		.w = w,
		.function = -1,
		.graph_entry = -1,
		.graph_exit = -1,
		.tracer = "nop",
	};
	int r = import_write_stream(&x, err);

	buf_deinit(&x.scratch);
	return r;
}

static bool dat_begins(const void *data, size_t len)
{
	return len >= DAT_MAGIC_SIZE && memcmp(data, DAT_MAGIC, DAT_MAGIC_SIZE) == 0;
}

static int dat_read(int in, struct stream_writer *w, const struct import_options *o,
		    struct error *err)
{
	_cleanup_dat_ struct dat d = { .fd = -EBADF };
	int r = dat_open(&d, in, err);

	if (r == 0)
		r = dat_choose(&d, o->instance, err);
	return r < 0 ? r : dat_write(&d, w, err);
}

const struct reader_ops reader_dat_ops = { .begins = dat_begins, .read = dat_read };
