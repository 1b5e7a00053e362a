/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/names.h"

#include <fcntl.h>

#include "capture/btf.h"
#include "capture/metadata.h"
#include "util/io.h"

#define FORMATS_PER_SLICE 48
#define FORMAT_MAX (256U << 10)
#define BTF_MAX (64U << 20)
#define SYMBOLS_PER_SLICE (512U << 10)

static const char *const task_events[] = { "task:task_newtask", "task:task_rename",
					   "sched:sched_process_free" };

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct names *n, size_t *cap, const char *system, const char *event)
{
	char *name;

	if (n->event_count == *cap) {
		size_t more = *cap * 2 + 64;
		char **events = reallocarray(n->events, more, sizeof(*events));

		if (!events)
			return -ENOMEM;
		n->events = events;
		*cap = more;
	}
	if (asprintf(&name, "%s%s%s", system ?: "", system ? ":" : "", event) < 0)
		return -ENOMEM;
	n->events[n->event_count++] = name;
	return 0;
}

/* Events that can't be enabled but occur: marks, stacks, functions. */
static int add_ftrace_system(struct names *n, size_t *cap)
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
			r = add_name(n, cap, "ftrace", e->d_name);
	closedir(dir);
	return r;
}

int names_init(struct names *n, const struct capture_env *env, const char *const *events,
	       size_t event_count, bool all_symbols)
{
	size_t cap = 0, kept = 0;
	int r = 0;

	*n = (struct names){ .env = env, .want_symbols = all_symbols, .kallsyms = -EBADF };
	n->scan = TASK_SCAN_INIT;
	for (size_t i = 0; r == 0 && i < event_count; i++)
		r = add_name(n, &cap, NULL, events[i]);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(task_events); i++)
		r = add_name(n, &cap, NULL, task_events[i]);
	if (r == 0)
		r = add_ftrace_system(n, &cap);
	if (r < 0) {
		names_deinit(n);
		return r;
	}
	qsort(n->events, n->event_count, sizeof(*n->events), compare_names);
	for (size_t i = 0; i < n->event_count; i++) {
		if (kept && strcmp(n->events[kept - 1], n->events[i]) == 0)
			free(n->events[i]);
		else
			n->events[kept++] = n->events[i];
	}
	n->event_count = kept;
	return 0;
}

static void close_sources(struct names *n)
{
	task_scan_end(&n->scan);
	n->kallsyms = close_fd(n->kallsyms);
	buf_deinit(&n->symbols);
	buf_deinit(&n->modules);
	identifiers_deinit(&n->identifiers);
}

void names_deinit(struct names *n)
{
	close_sources(n);
	tracefs_free_names(n->events, n->event_count);
	*n = (struct names){ .kallsyms = -EBADF, .scan = TASK_SCAN_INIT };
}

void names_rewind(struct names *n)
{
	close_sources(n);
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

bool format_wants_symbols(const char *text)
{
	const char *p = strstr(text, "\nprint fmt:");

	if (!p)
		return false;
	while ((p = strstr(p, "%p"))) {
		p += 2;
		if (*p == 's' || *p == 'S' || *p == 'f' || *p == 'F' || *p == 'B')
			return true;
	}
	return false;
}

static int write_format(struct names *n, const char *name, struct stream_writer *w)
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
	/* Some events have no format; one of a module may be gone. */
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = stream_write(w, CHUNK_FORMAT, text.data, text.len);
	if (r == 0 && !buf_string(&text))
		r = -ENOMEM;
	if (r < 0)
		return r;
	identifiers_collect(&n->identifiers, text.data + system_len + 1);
	if (!n->want_symbols)
		n->want_symbols = format_wants_symbols(text.data + system_len + 1);
	return r;
}

static int formats_step(struct names *n, struct stream_writer *w)
{
	for (int i = 0; i < FORMATS_PER_SLICE && n->next_event < n->event_count; i++) {
		int r = write_format(n, n->events[n->next_event++], w);

		if (r < 0)
			return r;
	}
	return n->next_event < n->event_count;
}

static int printk_step(struct names *n, struct stream_writer *w)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = read_file_at(tracefs_root(n->env->tracefs), "printk_formats", 16U << 20, &text);

	if (r < 0 || !text.len)
		return r == -ENOMEM ? r : 0;
	return stream_write_packed(w, CHUNK_PRINTK, text.data, text.len);
}

/*
 * Under kptr_restrict each line begins with a zero address. The first one does
 * anyway on x86-64 before 6.15, whose per-CPU symbols count from 0.
 */
static bool all_zero(const struct buf *text)
{
	const char *p = (const char *)text->data, *end = p + text->len;

	if (!text->len)
		return false;
	while (p) {
		while (p < end && *p == '0')
			p++;
		if (p < end && *p != ' ')
			return false;
		p = memchr(p, '\n', (size_t)(end - p));
		p = p ? p + 1 : NULL;
	}
	return true;
}

/* Behind the last whole line that a stream has room for. */
static void cut_symbols(struct names *n)
{
	const char *end = memrchr(n->symbols.data, '\n', STREAM_KALLSYMS_MAX);

	n->symbols.len = end ? (size_t)(end - n->symbols.data) + 1 : 0;
	n->symbols_cut = true;
}

/* "NAME ADDRESS" of each; nothing if procfs tells nothing. */
static int read_modules(const struct names *n, struct buf *out)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[256], *save = NULL;
	int r;

	snprintf(path, sizeof(path), "%s/modules", n->env->proc);
	r = read_file_at(AT_FDCWD, path, 4U << 20, &text);
	if (r < 0 || !buf_string(&text))
		return r == -ENOMEM ? r : 0;
	for (char *p = strtok_r(text.data, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
		const char *address = strstr(p, " 0x");

		buf_printf(out, "%.*s%s\n", (int)strcspn(p, " "), p, address ?: "");
	}
	return buf_error(out);
}

/* A whole line of text, wherever it stands. */
static bool has_line(const struct buf *text, const char *line, size_t len)
{
	const char *p = text->data, *end = p + text->len;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		if ((size_t)(nl - p) == len && !memcmp(p, line, len))
			return true;
		p = nl + 1;
	}
	return false;
}

/* "[NAME]" of each of now that is not in before, or is elsewhere now. */
static int find_new_modules(const struct buf *before, const struct buf *now, struct buf *out)
{
	for (size_t at = 0; at < now->len;) {
		const char *line = now->data + at;
		size_t len = (size_t)((char *)memchr(line, '\n', now->len - at) - line);

		if (!has_line(before, line, len))
			buf_printf(out, "[%.*s]\n", (int)strcspn(line, " \n"), line);
		at += len + 1;
	}
	return buf_error(out);
}

/* The lines of these modules move to the front, and are all that stays. */
static void keep_modules(struct buf *text, const struct buf *modules)
{
	size_t kept = 0;

	for (size_t at = 0; at < text->len;) {
		const char *line = text->data + at, *end = memchr(line, '\n', text->len - at), *tab;
		size_t len = (size_t)((end ?: text->data + text->len) - line);

		tab = memchr(line, '\t', len);
		if (tab && end && has_line(modules, tab + 1, (size_t)(end - tab) - 1)) {
			memmove(text->data + kept, line, len + 1);
			kept += len + 1;
		}
		at += len + 1;
	}
	text->len = kept;
}

int names_update(struct names *n, struct stream_writer *w)
{
	_cleanup_buf_ struct buf now = BUF_INIT, added = BUF_INIT, text = BUF_INIT;
	char path[256];
	int r;

	if (n->stage != NAMES_DONE || !n->want_symbols || n->symbols_hidden || n->symbols_cut)
		return 0;
	r = read_modules(n, &now);
	if (r == 0)
		r = find_new_modules(&n->modules, &now, &added);
	if (r < 0)
		return r;
	if (added.len) {
		snprintf(path, sizeof(path), "%s/kallsyms", n->env->proc);
		r = read_file_at(AT_FDCWD, path, STREAM_KALLSYMS_MAX, &text);
		if (r < 0)
			return r == -ENOMEM ? r : 0;
		keep_modules(&text, &added);
	}
	buf_deinit(&n->modules);
	n->modules = now;
	now = BUF_INIT;
	return text.len ? stream_write_packed(w, CHUNK_KALLSYMS, text.data, text.len) : 0;
}

static int kallsyms_step(struct names *n, struct stream_writer *w)
{
	char path[256];
	ssize_t got;
	char *p;
	int r;

	if (!n->want_symbols)
		return 0;
	if (n->kallsyms < 0) {
		/* Before the symbols: one that comes between is read again, not missed. */
		r = read_modules(n, &n->modules);
		if (r < 0)
			return r;
		snprintf(path, sizeof(path), "%s/kallsyms", n->env->proc);
		n->kallsyms = open(path, O_RDONLY | O_CLOEXEC);
		if (n->kallsyms < 0)
			return 0;
	}
	p = buf_reserve(&n->symbols, SYMBOLS_PER_SLICE);
	if (!p)
		return -ENOMEM;
	got = read_full(n->kallsyms, p, SYMBOLS_PER_SLICE);
	if (got < 0)
		return (int)got;
	n->symbols.len += (size_t)got;
	n->symbols_hidden = all_zero(&n->symbols);
	if (n->symbols.len > STREAM_KALLSYMS_MAX)
		cut_symbols(n);
	else if ((size_t)got == SYMBOLS_PER_SLICE && !n->symbols_hidden)
		return 1;
	r = n->symbols_hidden || !n->symbols.len
		    ? 0
		    : stream_write_packed(w, CHUNK_KALLSYMS, n->symbols.data, n->symbols.len);
	n->kallsyms = close_fd(n->kallsyms);
	buf_deinit(&n->symbols);
	return r;
}

/* The enumerators' values, by the kernel's type information; none without that. */
static int resolve_enums(const struct names *n, struct buf *out)
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
		r = resolve_enums(n, &text);
	if (r < 0 || !text.len)
		return r;
	return stream_write_packed(w, CHUNK_ENUMS, text.data, text.len);
}

bool names_want_arguments(int dir)
{
	_cleanup_buf_ struct buf options = BUF_INIT;

	if (tracefs_read(dir, "trace_options", &options) < 0)
		return false;
	/* What it read has no newline at its end, and a tracer's own options stand there. */
	buf_putc(&options, '\n');
	return buf_string(&options) && (strstr(options.data, "\nfunc-args\n") ||
					strstr(options.data, "\nfuncgraph-args\n"));
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

int names_step(struct names *n, struct stream_writer *w)
{
	int r = 0;

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
		r = kallsyms_step(n, w);
		break;
	case NAMES_DONE:
		return 0;
	}
	if (r == 0)
		n->stage++;
	return r < 0 ? r : n->stage != NAMES_DONE;
}
