/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/names/kernel_symbols.h"

#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "stream/excerpt.h"

/*
 * Under kptr_restrict every address is zero. The first one always is on x86-64 before 6.15, whose
 * per-CPU symbols start at 0.
 */
static bool symbols_are_zero(const struct buf *text)
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

/* Cuts the text after the last whole line that fits into a stream. */
static void kernel_symbols_cut(struct kernel_symbols *s)
{
	const char *end = memrchr(s->text.data, '\n', STREAM_KALLSYMS_MAX);

	s->text.len = end ? (size_t)(end - s->text.data) + 1 : 0;
	s->cut = true;
}

/* Appends "NAME ADDRESS" for each module; nothing if procfs does not list them. */
static int read_modules(const char *proc, struct buf *out)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[256], *save = NULL;
	int r;

	snprintf(path, sizeof(path), "%s/modules", proc);
	r = read_file_at(AT_FDCWD, path, 4U << 20, &text);
	if (r < 0 || !buf_string(&text))
		return r == -ENOMEM ? r : 0;
	for (char *p = strtok_r(text.data, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
		const char *address = strstr(p, " 0x");

		buf_printf(out, "%.*s%s\n", (int)strcspn(p, " "), p, address ?: "");
	}
	return buf_error(out);
}

/* True if text contains this whole line. */
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

/* Appends "[NAME]" for each module in `now` that is not in `before`, or has another address. */
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

/* Keeps only these modules' lines. */
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

static const char mark_writer_part[] = " tracing_mark_write.";

static uint64_t symbol_address(const char *line)
{
	return strtoull(line, NULL, 16);
}

/* Compilers may split a function's hot path off under a suffixed name (NAME.part.0). */
static bool symbol_is_part(const char *line, const char *end)
{
	const char *p =
		memmem(line, (size_t)(end - line), mark_writer_part, sizeof(mark_writer_part) - 1);

	return p && strncmp(p + sizeof(mark_writer_part) - 1, "cold", 4) != 0;
}

/*
 * Finds two lines: the function that writes marks, and the next symbol, where that function ends.
 * Most traces have a mark and name no other symbol. The search begins at `from`. Returns NULL if
 * the lines are missing, incomplete or not in address order.
 */
static const char *find_excerpt(const struct buf *text, size_t from, size_t *ret_len)
{
	const char *begin = text->data, *found, *before, *line, *next, *last;

	if (!begin)
		return NULL;
	found = memmem(begin + from, text->len - from, EXCERPT_NAME, sizeof(EXCERPT_NAME) - 1);
	before = found ? memrchr(begin, '\n', (size_t)(found - begin)) : NULL;
	if (!before)
		return NULL;
	line = before + 1;
	before = memrchr(begin, '\n', (size_t)(before - begin));
	before = before ? before + 1 : begin;
	next = found + sizeof(EXCERPT_NAME) - 1;
	last = memchr(next, '\n', (size_t)(begin + text->len - next));
	if (!last || memchr(next, '\t', (size_t)(last - next)) ||
	    symbol_address(before) >= symbol_address(line) ||
	    symbol_address(line) >= symbol_address(next) || symbol_is_part(before, line) ||
	    symbol_is_part(next, last))
		return NULL;
	*ret_len = (size_t)(last + 1 - line);
	return line;
}

static void excerpt_remember(struct excerpt_memory *m, const char *excerpt, size_t len)
{
	int empty = 0;

	if (!m || len > sizeof(m->text) ||
	    !__atomic_compare_exchange_n(&m->state, &empty, 1, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return;
	memcpy(m->text, excerpt, len);
	m->len = len;
	__atomic_store_n(&m->state, 2, __ATOMIC_RELEASE);
}

/* Returns 1: written; 0: no excerpt found; or -errno. */
static int write_excerpt(const struct kernel_symbols *s, size_t from, struct stream_writer *w)
{
	size_t len;
	const char *excerpt = find_excerpt(&s->text, from, &len);

	if (!excerpt)
		return 0;
	excerpt_remember(s->memory, excerpt, len);
	return stream_write(w, CHUNK_KALLSYMS_EXCERPT, excerpt, len) ?: 1;
}

/* Returns 1: written; 0: an earlier capture found none; or -errno. */
static int write_remembered(struct kernel_symbols *s, struct stream_writer *w)
{
	const struct excerpt_memory *m = s->memory;
	int r;

	if (!m || __atomic_load_n(&m->state, __ATOMIC_ACQUIRE) != 2)
		return 0;
	r = stream_write(w, CHUNK_KALLSYMS_EXCERPT, m->text, m->len);
	s->excerpt_alone = r == 0;
	return r ?: 1;
}

static int kernel_symbols_write(const struct kernel_symbols *s, struct stream_writer *w)
{
	int r = s->excerpt_alone ? 0 : write_excerpt(s, 0, w);

	return r < 0 ? r : stream_write_packed(w, CHUNK_KALLSYMS, s->text.data, s->text.len);
}

/* Bytes searched again in the next step: an excerpt (two lines) may straddle the boundary. */
#define OVERLAP 4096

/* Returns 1: opened; 0: procfs has no symbols; or -errno. */
static int kernel_symbols_open(struct kernel_symbols *s, const char *proc)
{
	char path[256];
	int r;

	if (s->fd >= 0)
		return 1;
	/*
	 * Read modules before symbols: a module loaded in between is then read again, not missed.
	 */
	buf_deinit(&s->modules);
	r = read_modules(proc, &s->modules);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "%s/kallsyms", proc);
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	/* If the file is unreadable, there is no rest to write later. */
	s->excerpt_alone &= s->fd >= 0;
	return s->fd >= 0;
}

/* Ends reading: the excerpt is enough, or all is read. excerpt: write_excerpt's result. */
static int kernel_symbols_end(struct kernel_symbols *s, int excerpt, struct stream_writer *w)
{
	int r = MIN(excerpt, 0);

	if (excerpt == 0 && !s->hidden && s->text.len)
		r = kernel_symbols_write(s, w);
	s->excerpt_alone = excerpt > 0;
	s->fd = close_fd(s->fd);
	buf_deinit(&s->text);
	return r;
}

int kernel_symbols_step(struct kernel_symbols *s, const char *proc, bool all,
			struct stream_writer *w)
{
	size_t from = s->text.len - MIN(s->text.len, (size_t)OVERLAP);
	int r = all || s->fd >= 0 ? 0 : write_remembered(s, w);
	ssize_t got;
	char *p;

	if (r != 0)
		return MIN(r, 0);
	r = kernel_symbols_open(s, proc);
	if (r <= 0)
		return r;
	p = buf_reserve(&s->text, KERNEL_SYMBOLS_STEP);
	if (!p)
		return -ENOMEM;
	got = read_full(s->fd, p, KERNEL_SYMBOLS_STEP);
	if (got < 0)
		return (int)got;
	s->text.len += (size_t)got;
	s->hidden = symbols_are_zero(&s->text);
	r = all || s->hidden ? 0 : write_excerpt(s, from, w);
	if (r == 0 && s->text.len > STREAM_KALLSYMS_MAX)
		kernel_symbols_cut(s);
	else if (r == 0 && (size_t)got == KERNEL_SYMBOLS_STEP && !s->hidden)
		return 1;
	return kernel_symbols_end(s, r, w);
}

int kernel_symbols_note_modules(struct kernel_symbols *s, const char *proc)
{
	buf_deinit(&s->at_start);
	return read_modules(proc, &s->at_start);
}

int kernel_symbols_find_gone(const struct kernel_symbols *s, struct buf *out)
{
	return s->excerpt_alone || s->hidden ? 0 : find_new_modules(&s->modules, &s->at_start, out);
}

int kernel_symbols_update(struct kernel_symbols *s, const char *proc, struct stream_writer *w)
{
	_cleanup_buf_ struct buf now = BUF_INIT, added = BUF_INIT, text = BUF_INIT;
	char path[256];
	int r;

	if (s->hidden || s->cut || s->excerpt_alone)
		return 0;
	r = read_modules(proc, &now);
	if (r == 0)
		r = find_new_modules(&s->modules, &now, &added);
	if (r < 0)
		return r;
	if (added.len) {
		snprintf(path, sizeof(path), "%s/kallsyms", proc);
		r = read_file_at(AT_FDCWD, path, STREAM_KALLSYMS_MAX, &text);
		if (r < 0)
			return r == -ENOMEM ? r : 0;
		keep_modules(&text, &added);
	}
	buf_deinit(&s->modules);
	s->modules = now;
	now = BUF_INIT;
	return text.len ? stream_write_packed(w, CHUNK_KALLSYMS, text.data, text.len) : 0;
}

void kernel_symbols_deinit(struct kernel_symbols *s)
{
	struct excerpt_memory *memory = s->memory;

	close_fd(s->fd);
	buf_deinit(&s->text);
	buf_deinit(&s->modules);
	buf_deinit(&s->at_start);
	*s = KERNEL_SYMBOLS_INIT;
	s->memory = memory;
}
