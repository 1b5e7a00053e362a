/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/names/names.h"

#include <fcntl.h>

#include "base/io.h"
#include "base/vec.h"
#include "daemon/capture/names/btf.h"
#include "daemon/capture/plan/synthetic.h"

#define FORMATS_PER_SLICE 48
#define FORMAT_MAX (256U << 10)
#define BTF_MAX (64U << 20)

static const char *const task_events[] = { "task:task_newtask", "task:task_rename",
					   "sched:sched_process_free" };

static int names_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_add(struct names *n, size_t *cap, const char *system, const char *event)
{
	char *name;

	if (vec_reserve(n->events, n->event_count, *cap, 1) < 0)
		return -ENOMEM;
	if (asprintf(&name, "%s%s%s", system ?: "", system ? ":" : "", event) < 0)
		return -ENOMEM;
	n->events[n->event_count++] = name;
	return 0;
}

/* Adds system ftrace's events: marks, stacks, functions. They occur but cannot be enabled. */
static int names_add_ftrace(struct names *n, size_t *cap)
{
	int fd = tracefs_open_file(tracefs_root(n->env->tracefs), O_RDONLY | O_DIRECTORY,
				   "events/ftrace");
	struct dirent *e;
	int r = 0;
	DIR *dir;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	dir = fdopendir(fd);
	if (!dir) {
		close_fd(fd);
		return -ENOMEM;
	}
	while (r == 0 && (e = readdir(dir)))
		if (e->d_type != DT_REG && e->d_name[0] != '.')
			r = names_add(n, cap, "ftrace", e->d_name);
	closedir(dir);
	return r;
}

int names_init(struct names *n, const struct capture_env *env, const char *const *events,
	       size_t event_count, bool all_symbols)
{
	size_t cap = 0, kept = 0;
	int r = 0;

	*n = (struct names){ .env = env, .all_symbols = all_symbols };
	n->symbols = KERNEL_SYMBOLS_INIT;
	n->symbols.memory = env->excerpt;
	n->scan = TASK_SCAN_INIT;
	for (size_t i = 0; r == 0 && i < event_count; i++)
		r = names_add(n, &cap, NULL, events[i]);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(task_events); i++)
		r = names_add(n, &cap, NULL, task_events[i]);
	if (r == 0)
		r = names_add_ftrace(n, &cap);
	if (r < 0) {
		names_deinit(n);
		return r;
	}
	qsort(n->events, n->event_count, sizeof(*n->events), names_compare);
	for (size_t i = 0; i < n->event_count; i++) {
		if (kept && strcmp(n->events[kept - 1], n->events[i]) == 0)
			free(n->events[i]);
		else
			n->events[kept++] = n->events[i];
	}
	n->event_count = kept;
	return 0;
}

static void names_close_sources(struct names *n)
{
	task_scan_end(&n->scan);
	kernel_symbols_deinit(&n->symbols);
	identifiers_deinit(&n->identifiers);
}

void names_deinit(struct names *n)
{
	names_close_sources(n);
	tracefs_free_names(n->events, n->event_count);
	*n = NAMES_INIT;
}

void names_rewind(struct names *n)
{
	names_close_sources(n);
	n->stage = NAMES_TASKS;
	n->next_event = 0;
}

static int tasks_step(struct names *n, struct stream_writer *w)
{
	if (!n->scan.processes) {
		int r = task_scan_start(&n->scan, n->env->proc, n->known);

		if (r < 0)
			return r;
	}
	return task_scan_step(&n->scan, w);
}

/* Notes an event whose text needs symbols beyond the excerpt. */
static void names_note_symbol_event(struct names *n, const char *name, const char *format)
{
	const char *number = strstr(format, "\nID: ");

	if (strcmp(name, "ftrace:print") == 0 || !format_wants_symbols(format))
		return;
	if (number)
		event_set_add(&n->symbol_events, (uint16_t)strtoul(number + 5, NULL, 10));
	else
		n->all_symbols = true;
	/* Events of system ftrace don't count: tracers and stacks bring them. */
	n->some_name_symbols |= strncmp(name, "ftrace:", 7) != 0;
}

/*
 * The kernel's name of an event by SQL is unique; the stream has the requested one. text: system,
 * NUL, format.
 */
static void names_shorten_synthetic(struct buf *text, size_t system_len)
{
	static const char begin[] = "name: ";
	char *format = text->data + system_len + 1, *name = format + strlen(begin);

	if (strcmp(text->data, "synthetic") != 0 || strncmp(format, begin, strlen(begin)) != 0 ||
	    !synthetic_is_ours(name))
		return;
	text->len -= SYNTHETIC_PREFIX_LEN;
	/* With the NUL behind the text. */
	memmove(name, name + SYNTHETIC_PREFIX_LEN, (size_t)(text->data + text->len - name) + 1);
}

static int names_write_format(struct names *n, const char *name, struct stream_writer *w)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *colon = strchr(name, ':');
	size_t system_len;
	char path[512];
	int r;

	if (!colon)
		return 0;
	system_len = (size_t)(colon - name);
	if ((size_t)snprintf(path, sizeof(path), "events/%.*s/%s/format", (int)system_len, name,
			     colon + 1) >= sizeof(path))
		return 0;
	buf_append(&text, name, system_len);
	buf_putc(&text, '\0');
	r = read_file_at(tracefs_root(n->env->tracefs), path, FORMAT_MAX, &text);
	/* Some events have no format; a module's event may be gone. */
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (!buf_string(&text))
		return -ENOMEM;
	names_shorten_synthetic(&text, system_len);
	r = stream_write(w, CHUNK_FORMAT, text.data, text.len);
	if (r < 0)
		return r;
	identifiers_collect(&n->identifiers, text.data + system_len + 1);
	names_note_symbol_event(n, name, text.data + system_len + 1);
	return 0;
}

static int formats_step(struct names *n, struct stream_writer *w)
{
	for (int i = 0; i < FORMATS_PER_SLICE && n->next_event < n->event_count; i++) {
		int r = names_write_format(n, n->events[n->next_event++], w);

		if (r < 0)
			return r;
	}
	return n->next_event < n->event_count;
}

int names_step_formats(struct names *n, struct stream_writer *w)
{
	return n->unwanted ? 0 : formats_step(n, w);
}

static int printk_step(struct names *n, struct stream_writer *w)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = read_file_at(tracefs_root(n->env->tracefs), "printk_formats", 16U << 20, &text);

	if (r < 0 || !text.len)
		return r == -ENOMEM ? r : 0;
	return stream_write_packed(w, CHUNK_PRINTK, text.data, text.len);
}

/* Resolves enumerators by the kernel's BTF; writes nothing without it. */
static int names_resolve_enums(const struct names *n, struct buf *out)
{
	const struct identifiers *ids = &n->identifiers;
	_cleanup_buf_ struct buf btf = BUF_INIT;
	char path[256];
	int r;

	snprintf(path, sizeof(path), "%s/kernel/btf/vmlinux", capture_env_sys(n->env));
	r = read_file_at(AT_FDCWD, path, BTF_MAX, &btf);
	if (r == 0)
		r = btf_resolve_enums(btf.data, btf.len, ids->names, ids->count, out);
	if (r != -ENOMEM)
		r = constants_resolve_hz(ids->names, ids->count, out);
	if (r != -ENOMEM)
		r = constants_resolve_vmemmap(capture_env_sys(n->env), n->env->proc, ids->names,
					      ids->count, out);
	return r == -ENOMEM ? r : 0;
}

static int enums_step(struct names *n, struct stream_writer *w)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = identifiers_sort(&n->identifiers);

	if (r == 0 && n->identifiers.count)
		r = names_resolve_enums(n, &text);
	if (r < 0 || !text.len)
		return r;
	return stream_write_packed(w, CHUNK_ENUMS, text.data, text.len);
}

int names_see_options(struct names *n, int dir)
{
	_cleanup_buf_ struct buf options = BUF_INIT;

	/*
	 * Ends the last option's line: tracefs_read cuts the final newline, and a tracer's own
	 * options are at the end.
	 */
	buf_putc(&options, '\n');
	if (tracefs_read(dir, "trace_options", &options) < 0)
		n->all_symbols = true;
	buf_putc(&options, '\n');
	if (!buf_string(&options))
		return -ENOMEM;
	n->want_arguments =
		strstr(options.data, "\nfunc-args\n") || strstr(options.data, "\nfuncgraph-args\n");
	/*
	 * Instances inherit stacktrace from the top level. It adds a function stack to each event.
	 */
	n->all_symbols |= strstr(options.data, "\nstacktrace\n") != NULL;
	return 0;
}

static int arguments_step(const struct names *n, struct stream_writer *w)
{
	_cleanup_buf_ struct buf btf = BUF_INIT, text = BUF_INIT;
	char path[256];
	int r;

	if (!n->want_arguments)
		return 0;
	snprintf(path, sizeof(path), "%s/kernel/btf/vmlinux", capture_env_sys(n->env));
	r = read_file_at(AT_FDCWD, path, BTF_MAX, &btf);
	if (r == 0)
		r = btf_describe_arguments(btf.data, btf.len, &text);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	return stream_write_packed(w, CHUNK_ARGUMENTS, text.data, text.len);
}

static bool names_want_all_symbols(const struct names *n)
{
	if (n->all_symbols || !n->some_name_symbols)
		return n->all_symbols;
	return !n->seen || seen_events_has_any(n->seen, &n->symbol_events);
}

static int symbols_step(struct names *n, struct stream_writer *w)
{
	bool all = names_want_all_symbols(n);
	int r = kernel_symbols_step(&n->symbols, n->env->proc, all, w);

	if (r == 0 && n->seen && (!n->some_name_symbols || !n->symbols.excerpt_alone))
		n->seen->off = true;
	return r;
}

/* The formats are known: where none names symbols, the events need not be looked at. */
static int names_wait_for_symbols(struct names *n)
{
	if (n->seen && !n->some_name_symbols)
		n->seen->off = true;
	return kernel_symbols_note_modules(&n->symbols, n->env->proc);
}

bool names_lack_symbols(struct names *n)
{
	if (n->stage == NAMES_KALLSYMS)
		return !n->symbols_wait;
	if (n->stage != NAMES_DONE || !n->symbols.excerpt_alone || !names_want_all_symbols(n))
		return false;
	n->stage = NAMES_KALLSYMS;
	return true;
}

int names_step(struct names *n, struct stream_writer *w)
{
	int r = 0;

	if (n->unwanted)
		return 0;
	switch (n->stage) {
	case NAMES_TASKS:
		r = tasks_step(n, w);
		break;
	case NAMES_FORMATS:
		r = formats_step(n, w);
		break;
	case NAMES_ENUMS:
		r = enums_step(n, w);
		break;
	case NAMES_ARGUMENTS:
		r = arguments_step(n, w);
		break;
	case NAMES_PRINTK:
		r = printk_step(n, w);
		break;
	case NAMES_KALLSYMS:
		if (n->symbols_wait)
			return names_wait_for_symbols(n);
		r = symbols_step(n, w);
		break;
	case NAMES_DONE:
		return 0;
	}
	if (r == 0)
		n->stage++;
	return r < 0 ? r : n->stage != NAMES_DONE;
}

int names_update(struct names *n, struct stream_writer *w)
{
	if (n->stage != NAMES_DONE)
		return 0;
	return kernel_symbols_update(&n->symbols, n->env->proc, w);
}
