/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "formats/json/function_element.h"

#include <string.h>
#include <sys/mman.h>

#include "base/io.h"
#include "base/json.h"
#include "base/plain.h"
#include "print/arguments.h"
#include "print/format_int.h"
#include "print/funcgraph.h"

#define THREADS 256 /* a power of two */

/* Cached members that name a thread. */
struct thread_text {
	int32_t tid;
	bool idle; /* a damaged record may carry an idle thread's pid */
	uint64_t from_ts, until_ts;
	uint32_t len; /* 0: empty */
	char text[64];
};

#define SYMBOL_BITS 14
#define SYMBOL_NEAR 48

/* A function name escaped for a string: one cache line. */
struct symbol_text {
	uint64_t address;
	uint32_t age; /* entries of another age than the writer's are invalid */
	uint32_t len;
	char text[SYMBOL_NEAR];
} __attribute__((aligned(64)));

struct function_writer {
	const struct trace_info *info;
	struct printer *printer;
	uint32_t age;	      /* current age of the symbol cache; not 0 */
	uint64_t second;      /* the second in second_text, in ns */
	uint32_t second_len;  /* 0: none */
	char second_text[16]; /* digits of the second */
	struct buf text;      /* unescaped */
	bool looked;	      /* symbols was completely initialised for lookups */
	struct thread_text threads[THREADS];
	struct symbol_text symbols[1 << SYMBOL_BITS];
};

struct function_hits function_hits_of(const struct trace_info *info)
{
	struct function_hits h = {
		.events = info->events,
		.event = event_table_find_name(info->events, "ftrace", "function"),
	};

	h.ip = event_field(h.event, "ip");
	h.parent = event_field(h.event, "parent_ip");
	if (!h.ip || !h.parent)
		h.event = NULL;
	return h;
}

_hot_ bool function_hit_read(const struct function_hits *h, const struct trace_event *ev,
			     struct function_element *ret)
{
	*ret = function_element_of(FUNCTION_HIT, ev, ev->rec.ts);
	return record_read_uint(h->events, &ev->rec, h->ip->offset, h->ip->size, &ret->func) &&
	       record_read_uint(h->events, &ev->rec, h->parent->offset, h->parent->size, &ret->arg);
}

int function_writer_new(struct function_writer **ret, const struct trace_info *info,
			struct printer *printer)
{
	/* Like the printer's cache: zero pages cost nothing if no function is looked up. */
	struct function_writer *w =
		mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (w == MAP_FAILED)
		return -ENOMEM;
	w->info = info;
	w->printer = printer;
	w->age = 1;
	*ret = w;
	return 0;
}

struct function_writer *function_writer_free(struct function_writer *w)
{
	if (w) {
		buf_deinit(&w->text);
		munmap(w, sizeof(*w));
	}
	return NULL;
}

void function_writer_forget(struct function_writer *w)
{
	for (size_t i = 0; i < THREADS; i++)
		w->threads[i].len = 0;
	w->age++;
}

/* Escapes the text between start and w if needed. */
static char *element_escape(struct buf *b, char *start, char *w)
{
	_cleanup_buf_ struct buf copy = BUF_INIT;
	size_t at = (size_t)(start - b->data);

	if (likely(is_plain(start, (size_t)(w - start))))
		return w;
	buf_append(&copy, start, (size_t)(w - start));
	b->len = at;
	json_escape(b, copy.data, copy.len);
	/* Same room as before. */
	return buf_reserve(b, 1024) ? b->data + b->len : NULL;
}

/* A point and three digits. */
static inline char *element_put_decimals(char *to, uint32_t thousandths)
{
	to[0] = '.';
	to[1] = (char)('0' + thousandths / 100);
	memcpy(to + 2, &format_digit_pairs[thousandths % 100 * 2], 2);
	return to + 4;
}

/* Microseconds with three decimals. */
static inline char *element_put_us(char *to, uint64_t ns)
{
	return element_put_decimals(format_dec(to, ns / 1000), (uint32_t)(ns % 1000));
}

_cold_ static void element_fill_second(struct function_writer *w, uint64_t ts)
{
	w->second = ts - ts % NSEC_PER_SEC;
	w->second_len = (uint32_t)(format_dec(w->second_text, ts / NSEC_PER_SEC) - w->second_text);
}

/* The same; fast if the second is that of the previous time. */
static inline char *element_put_time(struct function_writer *w, char *to, uint64_t ts)
{
	uint32_t us, pairs;

	if (unlikely(ts - w->second >= NSEC_PER_SEC || !w->second_len)) {
		if (ts < NSEC_PER_SEC)
			return element_put_us(to, ts);
		element_fill_second(w, ts);
	}
	us = (uint32_t)(ts - w->second) / 1000;
	pairs = us / 100;
	memcpy(to, w->second_text, sizeof(w->second_text));
	to += w->second_len;
	memcpy(to, &format_digit_pairs[2 * (pairs / 100)], 2);
	memcpy(to + 2, &format_digit_pairs[2 * (pairs % 100)], 2);
	memcpy(to + 4, &format_digit_pairs[2 * (us % 100)], 2);
	return element_put_decimals(to + 6, (uint32_t)(ts - w->second) % 1000);
}

_cold_ static void fill_thread(const struct function_writer *w, struct thread_text *t,
			       const struct function_element *e)
{
	bool idle = e->flags & FUNCTION_IDLE;
	struct task *task = idle ? NULL : task_table_find(w->info->tasks, e->tid, e->at);
	int32_t pid = idle ? 0 : e->tid;

	t->tid = e->tid;
	t->idle = idle;
	t->from_ts = 0;
	t->until_ts = UINT64_MAX;
	if (task) {
		task_see(task);
		t->from_ts = task_is_oldest(task) ? 0 : task->from_ts;
		t->until_ts = task_table_until(task);
		pid = task->tgid ?: e->tid;
	}
	t->len = (uint32_t)snprintf(t->text, sizeof(t->text),
				    ",\"pid\":%d,\"tid\":%d,\"ts\":", host_task(w->info->host, pid),
				    idle ? function_idle_tid(w->info->host, e->tid)
					 : host_task(w->info->host, e->tid));
}

static const struct thread_text *thread_text(struct function_writer *w,
					     const struct function_element *e)
{
	struct thread_text *t = &w->threads[(uint32_t)e->tid & (THREADS - 1)];

	if (unlikely(t->tid != e->tid || t->idle != !!(e->flags & FUNCTION_IDLE) || !t->len ||
		     e->at < t->from_ts || e->at >= t->until_ts))
		fill_thread(w, t, e);
	return t;
}

/* Room for an element without its long strings. */
#define ELEMENT_MAX (2 * SYMBOL_TEXT_MAX + 1024)

_noinline_ static char *fill_symbol(struct function_writer *w, struct buf *b, char *to,
				    struct symbol_text *s, uint64_t address)
{
	size_t start = (size_t)(to - b->data);
	char *end;

	/* Same reason as for the cache in printer.c. */
	if (unlikely(!w->looked)) {
		memset(w->symbols, 0, sizeof(w->symbols));
		w->looked = true;
	}
	end = element_escape(b, to, print_symbol(w->printer, to, address, 's'));
	if (end && (size_t)(end - b->data) - start <= SYMBOL_NEAR) {
		s->address = address;
		s->age = w->age;
		s->len = (uint32_t)((size_t)(end - b->data) - start);
		memcpy(s->text, b->data + start, s->len);
	}
	return end;
}

/* Writes the name of the function at the address as part of a string. Returns the end, or NULL. */
static inline char *element_put_symbol(struct function_writer *w, struct buf *b, char *to,
				       uint64_t address)
{
	struct symbol_text *s = &w->symbols[address * 0x9e3779b97f4a7c15 >> (64 - SYMBOL_BITS)];

	if (unlikely(s->address != address || s->age != w->age))
		return fill_symbol(w, b, to, s, address);
	memcpy(to, s->text, SYMBOL_NEAR);
	return to + s->len;
}

/*
 * Start of an element up to the name. Of a constant size, since a copy of that is fast.
 */
#define OPENING(text)                                                                              \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}
static const struct {
	char text[48];
	uint8_t len;
} openings[] = {
	[FUNCTION_BEGIN] = OPENING(",\n{\"ph\":\"B\",\"cat\":\"func\",\"name\":\""),
	[FUNCTION_END] = OPENING(",\n{\"ph\":\"E\",\"name\":\""),
	[FUNCTION_CALL] = OPENING(",\n{\"ph\":\"X\",\"cat\":\"func\",\"name\":\""),
	[FUNCTION_RUN] = OPENING(",\n{\"ph\":\"X\",\"cat\":\"func\",\"name\":\""),
	[FUNCTION_HIT] = OPENING(",\n{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"func\",\"name\":\""),
};

static void element_put_caller(struct function_writer *w, uint64_t retaddr, struct buf *out)
{
	char *p;

	buf_clear(&w->text);
	p = buf_reserve(&w->text, SYMBOL_TEXT_MAX);
	if (!p)
		return;
	w->text.len = (size_t)(print_ip_by(w->printer, p, retaddr, true) - p);
	buf_puts(out, "\"from\":\"");
	json_escape(out, w->text.data, w->text.len);
	buf_puts(out, "\",");
}

static void element_put_arguments(struct function_writer *w, const struct function_element *e,
				  const struct function_values *v, struct buf *out)
{
	struct argument_iter it;
	const char *before = "\"arguments\":{\"";
	bool any = false;

	argument_iter_init(&it, w->printer, e->func, v->words, e->count);
	for (; argument_next(&it); any = true, before = ",\"") {
		buf_clear(&w->text);
		if (it.type)
			argument_put(&it, &w->text);
		else
			buf_puts(&w->text, "not recorded");
		buf_puts(out, before);
		json_escape(out, it.name, it.name_len);
		buf_puts(out, "\":\"");
		json_escape(out, w->text.data, w->text.len);
		buf_putc(out, '"');
	}
	if (any)
		buf_puts(out, "},");
}

/* Writes members of args, each before a comma. Returns the end, or NULL. */
_noinline_ static char *element_put_values(struct function_writer *w, struct buf *out, char *to,
					   const struct function_element *e,
					   const struct function_values *v)
{
	out->len = (size_t)(to - out->data);
	if (v->retaddr)
		element_put_caller(w, v->retaddr, out);
	if (e->count)
		element_put_arguments(w, e, v, out);
	return buf_reserve(out, ELEMENT_MAX) ? out->data + out->len : NULL;
}

/* Writes the values or the missing part, if any. Returns the end, or NULL. */
static char *element_put_args(struct function_writer *w, struct buf *out, char *to,
			      const struct function_element *e, const void *more)
{
	if (likely(!(e->flags & (FUNCTION_RETVAL | FUNCTION_ENTRY_MISSING | FUNCTION_EXIT_MISSING |
				 FUNCTION_VALUES))))
		return to;
	to = stpcpy(to, ",\"args\":{");
	if (e->flags & FUNCTION_ENTRY_MISSING)
		to = stpcpy(to, "\"entry\":\"missing\",");
	if (e->flags & FUNCTION_EXIT_MISSING)
		to = stpcpy(to, "\"exit\":\"missing\",");
	if (e->flags & FUNCTION_RETVAL) {
		to = stpcpy(to, "\"ret\":\"");
		to = funcgraph_put_retval(w->printer, to, e->arg,
					  w->info->text.graph & GRAPH_RETVAL_HEX);
		to = stpcpy(to, "\",");
	}
	if (e->flags & FUNCTION_VALUES)
		to = element_put_values(w, out, to, e, more);
	if (!to)
		return NULL;
	if (to[-1] == '{') /* a function whose arguments are unknown */
		*to++ = ',';
	to[-1] = '}';
	return to;
}

static char *element_put_parent(struct function_writer *w, struct buf *out, char *to,
				uint64_t parent)
{
	if (!parent)
		return to;
	to = stpcpy(to, ",\"args\":{\"from\":\"");
	to = element_put_symbol(w, out, to, parent);
	return to ? stpcpy(to, "\"}") : NULL;
}

/* Writes how often each function was called. */
static char *element_put_calls(struct function_writer *w, struct buf *out, char *to,
			       const struct function_element *e, const void *more)
{
	const struct function_calls *calls = more;

	to = stpcpy(to, ",\"args\":{\"calls\":");
	to = format_dec(to, e->arg);
	for (unsigned i = 0; i < e->count; i++) {
		out->len = (size_t)(to - out->data);
		to = buf_reserve(out, ELEMENT_MAX);
		if (!to)
			return NULL;
		to = stpcpy(to, ",\"");
		to = element_put_symbol(w, out, to, calls[i].func);
		if (!to)
			return NULL;
		to = stpcpy(to, "\":");
		to = format_dec(to, calls[i].calls);
	}
	*to++ = '}';
	return to;
}

_hot_ void function_writer_put(struct function_writer *w, const struct function_element *e,
			       const void *more, struct buf *out)
{
	const struct thread_text *t = thread_text(w, e);
	char *to = buf_reserve(out, ELEMENT_MAX);

	if (unlikely(!to))
		return;
	memcpy(to, openings[e->kind].text, sizeof(openings[e->kind].text));
	to += openings[e->kind].len;
	to = element_put_symbol(w, out, to, e->func);
	if (unlikely(!to))
		return;
	*to++ = '"';
	memcpy(to, t->text, sizeof(t->text));
	to = element_put_time(w, to + t->len, e->ts);
	if (e->kind == FUNCTION_CALL || e->kind == FUNCTION_RUN) {
		to = stpcpy(to, ",\"dur\":");
		to = element_put_us(to, e->dur);
	}
	if (e->kind == FUNCTION_HIT)
		to = element_put_parent(w, out, to, e->arg);
	else if (e->kind == FUNCTION_RUN)
		to = element_put_calls(w, out, to, e, more);
	else
		to = element_put_args(w, out, to, e, more);
	if (unlikely(!to))
		return;
	*to++ = '}';
	out->len = (size_t)(to - out->data);
}
