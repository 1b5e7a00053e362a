/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "print/builtin.h"

#include <inttypes.h>
#include <string.h>

#include "print/format_int.h"
#include "print/printer.h"

static const struct {
	const char *name;
	enum builtin builtin;
} names[] = {
	{ "function", BUILTIN_FUNCTION },
	{ "context_switch", BUILTIN_CONTEXT_SWITCH },
	{ "wakeup", BUILTIN_WAKEUP },
	{ "kernel_stack", BUILTIN_KERNEL_STACK },
	{ "user_stack", BUILTIN_USER_STACK },
	{ "bputs", BUILTIN_BPUTS },
	{ "bprint", BUILTIN_BPRINT },
	{ "print", BUILTIN_PRINT },
	{ "hwlat", BUILTIN_HWLAT },
	{ "osnoise", BUILTIN_OSNOISE },
	{ "timerlat", BUILTIN_TIMERLAT },
	{ "raw_data", BUILTIN_RAW_DATA },
	{ "func_repeats", BUILTIN_FUNC_REPEATS },
};

enum builtin builtin_find(const struct event *ev)
{
	if (strcmp(ev->system, "ftrace"))
		return BUILTIN_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(ev->name, names[i].name))
			return names[i].builtin;
	return BUILTIN_NONE;
}

/* The record being printed. Printing ends at the first field that is missing. */
struct view {
	struct printer *p;
	const struct event *ev;
	const struct record *rec;
	struct buf *out;
	bool truncated;
};

static uint64_t view_get(struct view *v, const char *name)
{
	const struct field *f = event_field(v->ev, name);

	if (!f || !is_number_size(f->size) || f->size > v->rec->len ||
	    f->offset > v->rec->len - f->size) {
		v->truncated = true;
		return 0;
	}
	return load_uint(v->rec->data + f->offset, f->size, v->p->table->swap);
}

/* The data after the last field: a string, raw bytes or addresses. */
static const uint8_t *view_tail(struct view *v, const char *name, size_t *ret_len)
{
	const struct field *f = event_field(v->ev, name);

	*ret_len = 0;
	if (!f || f->offset > v->rec->len) {
		v->truncated = true;
		return NULL;
	}
	*ret_len = v->rec->len - f->offset;
	return v->rec->data + f->offset;
}

static void builtin_put_text(struct view *v, const char *name)
{
	size_t len;
	const uint8_t *text = view_tail(v, name, &len);

	if (text)
		buf_append(v->out, text, strnlen((const char *)text, len));
}

static void builtin_put_ip(struct view *v, uint64_t ip)
{
	char *w = buf_reserve(v->out, SYMBOL_TEXT_MAX);

	if (w)
		v->out->len += (size_t)(print_ip(v->p, w, ip) - w);
}

static void builtin_put_function(struct view *v)
{
	uint64_t parent = view_get(v, "parent_ip");

	builtin_put_ip(v, view_get(v, "ip"));
	if (parent && !v->p->table->env.text.no_parent) {
		buf_puts(v->out, " <-");
		builtin_put_ip(v, parent);
	}
}

static char task_state_char(uint64_t state)
{
	static const char chars[] = "RSDTtXZPI"; /* follows task_index_to_char() */

	return state < sizeof(chars) - 1 ? chars[state] : '?';
}

static void builtin_put_switch(struct view *v, const char *arrow)
{
	buf_printf(v->out, " %7d:%3d:%c %s [%03d] %7d:%3d:%c ", (int)view_get(v, "prev_pid"),
		   (int)view_get(v, "prev_prio"), task_state_char(view_get(v, "prev_state")), arrow,
		   (int)view_get(v, "next_cpu"), (int)view_get(v, "next_pid"),
		   (int)view_get(v, "next_prio"), task_state_char(view_get(v, "next_state")));
	/* The kernel looks the name up in saved_cmdlines when the trace is read. */
	buf_puts(v->out, "<...>");
}

static void builtin_put_kernel_stack(struct view *v)
{
	unsigned word = v->p->table->env.word_size;
	const uint64_t end = word == 8 ? UINT64_MAX : UINT32_MAX; /* ULONG_MAX ends a stack */
	size_t len;
	const uint8_t *at = view_tail(v, "caller", &len);

	buf_puts(v->out, "<stack trace>\n");
	for (; at && len >= word; at += word, len -= word) {
		uint64_t ip = load_uint(at, word, v->p->table->swap);

		if (ip == end)
			break;
		buf_puts(v->out, " => ");
		if (ip == TRAMPOLINE_ADDRESS)
			buf_puts(v->out, TRAMPOLINE_TEXT);
		else
			builtin_put_ip(v, ip);
		buf_putc(v->out, '\n');
	}
}

/* Follows seq_print_user_ip(): newlines in a path are escaped, as in /proc/PID/maps. */
static void builtin_put_user_ip(struct view *v, int32_t tgid, uint64_t ip)
{
	const struct event_table *t = v->p->table;
	struct user_place place;
	bool known = t->env.text.sym_userobj && t->user_places &&
		     t->user_places(t->user_places_data, tgid, ip, &place);

	for (size_t i = 0; known && i < place.path_len; i++) {
		if (place.path[i] == '\n')
			buf_puts(v->out, "\\012");
		else
			buf_putc(v->out, place.path[i]);
	}
	if (known)
		buf_printf(v->out, "[+0x%" PRIx64 "]", ip - place.start);
	if (!known || t->env.text.sym_addr)
		buf_printf(v->out, " <%0*" PRIx64 ">", (int)t->env.word_size * 2, ip);
}

static void builtin_put_user_stack(struct view *v)
{
	int32_t tgid = v->p->table->env.text.sym_userobj ? (int32_t)view_get(v, "tgid") : 0;
	unsigned word = v->p->table->env.word_size;
	size_t len;
	const uint8_t *at = view_tail(v, "caller", &len);

	buf_puts(v->out, "<user stack trace>\n");
	for (int i = 0; at && i < 8 && len >= word; i++, at += word, len -= word) {
		uint64_t ip = load_uint(at, word, v->p->table->swap);

		if (!ip)
			break;
		buf_puts(v->out, " => ");
		builtin_put_user_ip(v, tgid, ip);
		buf_putc(v->out, '\n');
	}
}

static void builtin_put_caller(struct view *v)
{
	builtin_put_ip(v, view_get(v, "ip"));
	buf_puts(v->out, ": ");
}

static void builtin_put_bputs(struct view *v)
{
	const char *text = table_printk(v->p->table, view_get(v, "str"));

	buf_puts(v->out, text ?: "<unknown string>");
}

static int builtin_put_bprint(struct view *v)
{
	const char *format = table_printk(v->p->table, view_get(v, "fmt"));
	size_t len;
	const uint8_t *args = view_tail(v, "buf", &len);

	if (!format) {
		buf_puts(v->out, "<unknown format>");
		return 0;
	}
	return args ? bprint_format(v->p, format, args, len, v->out) : 0;
}

/* The fields tv_sec and tv_nsec are one struct timespec64. */
static void builtin_put_hwlat(struct view *v)
{
	buf_printf(v->out, "#%-5u inner/outer(us): %4llu/%-5llu ts:%lld.%09lld count:%d",
		   (unsigned)view_get(v, "seqnum"), (unsigned long long)view_get(v, "duration"),
		   (unsigned long long)view_get(v, "outer_duration"),
		   (long long)view_get(v, "tv_sec"), (long long)view_get(v, "tv_nsec"),
		   (int)view_get(v, "count"));
	/* Machines without a generic sched_clock, such as x86, record nmi-total too. */
	if (view_get(v, "nmi_count"))
		buf_printf(v->out, " nmi-total:%llu nmi-count:%u",
			   (unsigned long long)view_get(v, "nmi_total_ts"),
			   (unsigned)view_get(v, "nmi_count"));
}

static void builtin_put_osnoise(struct view *v)
{
	uint64_t runtime = view_get(v, "runtime"), noise = view_get(v, "noise");
	uint32_t divisor = (uint32_t)runtime; /* do_div() has a 32-bit divisor */
	uint64_t ratio = divisor ? (runtime - noise) * 10000000 / divisor : 0;

	buf_printf(v->out, "%llu %10llu %3llu.%05llu %7llu %6u %6u %6u %6u %6u",
		   (unsigned long long)runtime, (unsigned long long)noise,
		   (unsigned long long)(ratio / 100000), (unsigned long long)(ratio % 100000),
		   (unsigned long long)view_get(v, "max_sample"), (unsigned)view_get(v, "hw_count"),
		   (unsigned)view_get(v, "nmi_count"), (unsigned)view_get(v, "irq_count"),
		   (unsigned)view_get(v, "softirq_count"), (unsigned)view_get(v, "thread_count"));
}

static void builtin_put_timerlat(struct view *v)
{
	static const char *const contexts[] = { "irq", "thread", "user-ret" };
	uint64_t context = view_get(v, "context");

	buf_printf(v->out, "#%-5u context %6s timer_latency %9llu ns",
		   (unsigned)view_get(v, "seqnum"),
		   context < ARRAY_SIZE(contexts) ? contexts[context] : "?",
		   (unsigned long long)view_get(v, "timer_latency"));
}

static void builtin_put_raw_data(struct view *v)
{
	size_t len;
	const uint8_t *data = view_tail(v, "buf", &len);
	char *w;

	buf_printf(v->out, "# %x buf:", (unsigned)view_get(v, "id"));
	w = data ? buf_reserve(v->out, len * 3) : NULL;
	for (size_t i = 0; w && i < len; i++) {
		*w++ = ' ';
		w = format_hex_byte(w, data[i]);
	}
	if (w)
		v->out->len = (size_t)(w - v->out->data);
}

static void builtin_put_repeats(struct view *v)
{
	uint64_t delta = view_get(v, "top_delta_ts") << 32 | view_get(v, "bottom_delta_ts");
	uint64_t us = (v->rec->ts - delta + 500) / 1000;

	builtin_put_function(v);
	buf_printf(v->out, " (repeats: %u, last_ts: %5llu.%06llu)", (unsigned)view_get(v, "count"),
		   (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));
}

static int builtin_put_message(struct view *v, enum builtin b)
{
	if (b == BUILTIN_BPRINT)
		return builtin_put_bprint(v);
	if (b == BUILTIN_BPUTS)
		builtin_put_bputs(v);
	else
		builtin_put_text(v, "buf");
	return 0;
}

static int builtin_put(struct view *v, enum builtin b)
{
	switch (b) {
	case BUILTIN_FUNCTION:
		builtin_put_function(v);
		break;
	case BUILTIN_CONTEXT_SWITCH:
		builtin_put_switch(v, "==>");
		break;
	case BUILTIN_WAKEUP:
		builtin_put_switch(v, "  +");
		break;
	case BUILTIN_KERNEL_STACK:
		builtin_put_kernel_stack(v);
		break;
	case BUILTIN_USER_STACK:
		builtin_put_user_stack(v);
		break;
	case BUILTIN_BPUTS:
	case BUILTIN_BPRINT:
	case BUILTIN_PRINT:
		builtin_put_caller(v);
		return builtin_put_message(v, b);
	case BUILTIN_HWLAT:
		builtin_put_hwlat(v);
		break;
	case BUILTIN_OSNOISE:
		builtin_put_osnoise(v);
		break;
	case BUILTIN_TIMERLAT:
		builtin_put_timerlat(v);
		break;
	case BUILTIN_RAW_DATA:
		builtin_put_raw_data(v);
		break;
	case BUILTIN_FUNC_REPEATS:
		builtin_put_repeats(v);
		break;
	case BUILTIN_NONE:
		break;
	}
	return 0;
}

/* Some texts end with a newline, but the caller adds one to each line. */
static void builtin_drop_newline(struct buf *out, size_t from)
{
	if (out->len > from && out->data[out->len - 1] == '\n')
		out->len--;
}

int builtin_print(enum builtin b, struct printer *p, const struct event *ev,
		  const struct record *rec, struct buf *out)
{
	struct view v = { .p = p, .ev = ev, .rec = rec, .out = out };
	size_t from = out->len;
	int r = builtin_put(&v, b);

	if (buf_error(out) < 0)
		return -ENOMEM;
	builtin_drop_newline(out, from);
	return r < 0 ? r : v.truncated ? -EBADMSG : 0;
}

bool builtin_print_message(struct printer *p, const struct event *ev, const struct record *rec,
			   struct buf *out)
{
	struct view v = { .p = p, .ev = ev, .rec = rec, .out = out };
	enum builtin b = builtin_find(ev);
	size_t from = out->len;

	if (b != BUILTIN_BPUTS && b != BUILTIN_BPRINT && b != BUILTIN_PRINT)
		return false;
	builtin_put_message(&v, b);
	builtin_drop_newline(out, from);
	return true;
}
