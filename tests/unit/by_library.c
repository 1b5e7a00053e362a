/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "by_library.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

struct by_library {
	struct tep_handle *tep;
	struct trace_seq seq;
};

int by_library_new(struct by_library **ret)
{
	struct by_library *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->tep = tep_alloc();
	if (!l->tep) {
		free(l);
		return -ENOMEM;
	}
	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_long_size(l->tep, 8);
	tep_set_page_size(l->tep, 4096);
	trace_seq_init(&l->seq);
	*ret = l;
	return 0;
}

struct by_library *by_library_free(struct by_library *l)
{
	if (l) {
		trace_seq_destroy(&l->seq);
		tep_free(l->tep);
		free(l);
	}
	return NULL;
}

/*
 * Translates the conversion at p. For pointers libtraceevent prints what the C library prints
 * ("(nil)", "0x1234"); the kernel prints all digits (its hash-ptr option is off here). With '#' the
 * C library omits the prefix for zero; the kernel writes it. Returns the number of bytes taken from
 * p; 0: no change is needed.
 */
static size_t put_conversion(const char *p, struct buf *out)
{
	if (p[1] == '%') {
		buf_puts(out, "%%");
		return 2;
	}
	if (p[1] == 'p' && !isalpha((unsigned char)p[2])) {
		buf_puts(out, "%016lx");
		return 2;
	}
	if (p[1] == '#' && strchr("lxz", p[2])) {
		buf_puts(out, "0x%");
		return 2;
	}
	if (p[1] == '#' && p[2] == '0') {
		char *end;
		unsigned long width = strtoul(p + 2, &end, 10);

		buf_printf(out, "0x%%0%lu", width > 2 ? width - 2 : 1);
		return (size_t)(end - p);
	}
	return 0;
}

/* Replaces the name of a constant by its value. Returns the number of bytes taken from p. */
static size_t put_name(const char *p, const struct constants *constants, struct buf *out)
{
	size_t n = 0;
	int64_t v;

	while (isalnum((unsigned char)p[n]) || p[n] == '_')
		n++;
	if (constants && constants_find(constants, p, n, &v))
		buf_printf(out, v < 0 ? "(%lld)" : "%lld", (long long)v);
	else
		buf_append(out, p, n);
	return n;
}

/* text ends with a NUL. */
static void translate(const char *text, const struct constants *constants, struct buf *out)
{
	const char *p = strstr(text, "\nprint fmt:");
	bool quoted = false;

	if (!p)
		p = text + strlen(text);
	buf_append(out, text, (size_t)(p - text));
	while (*p) {
		size_t taken = 0;

		if (quoted && *p == '\\' && p[1]) {
			buf_append(out, p, 2);
			taken = 2;
		} else if (quoted && *p == '%') {
			taken = put_conversion(p, out);
		} else if (!quoted && (isalpha((unsigned char)*p) || *p == '_')) {
			taken = put_name(p, constants, out);
		} else if (*p == '"') {
			quoted = !quoted;
		}
		if (!taken)
			buf_putc(out, *p);
		p += taken ?: 1;
	}
	buf_string(out);
}

bool by_library_add(struct by_library *l, const char *system, const char *text, size_t len,
		    const struct constants *constants)
{
	_cleanup_buf_ struct buf copy = BUF_INIT, out = BUF_INIT;

	buf_append(&copy, text, len);
	translate(buf_string(&copy), constants, &out);
	return tep_parse_event(l->tep, out.data, out.len, system) == TEP_ERRNO__SUCCESS;
}

bool by_library_print(struct by_library *l, uint16_t id, const struct record *rec, struct buf *out)
{
	struct tep_record record = {
		.ts = rec->ts,
		.size = (int)rec->len,
		.data = (void *)(uintptr_t)rec->data,
	};
	const struct tep_event *ev = tep_find_event(l->tep, id);

	if (!ev || ev->flags & TEP_EVENT_FL_FAILED)
		return false;
	trace_seq_reset(&l->seq);
	tep_print_event(l->tep, &l->seq, &record, "%s", TEP_PRINT_INFO);
	buf_append(out, l->seq.buffer, l->seq.len);
	return true;
}

void without_signs(struct buf *b)
{
	char *w = b->data;

	for (const char *p = b->data; *p; p++) {
		if (strncmp(p, "0xffffffff", 10) == 0 && strspn(p + 10, "0123456789abcdef") == 8) {
			*w++ = '0';
			*w++ = 'x';
			p += 9;
		} else {
			*w++ = *p;
		}
	}
	*w = '\0';
}

static uint64_t wild_value(enum wildness wild, uint32_t size, draw_t draw, void *userdata)
{
	static const uint64_t edges[] = {
		0,
		1,
		9,
		10,
		127,
		128,
		255,
		256,
		32767,
		32768,
		65535,
		65536,
		INT32_MAX,
		UINT64_C(1) << 31,
		UINT32_MAX,
		INT64_MAX,
		UINT64_MAX,
		UINT64_C(1) << 32,
		UINT64_C(1) << 63,
		(uint64_t)-4095,
		(uint64_t)-2,
	};

	switch (wild) {
	case WILD_ZERO:
		return 0;
	case WILD_SMALL:
		return draw(userdata) % 16;
	case WILD_BIT:
		return UINT64_C(1) << draw(userdata) % (MIN(MAX(size, 1U), 8U) * 8);
	case WILD_EDGE:
		return edges[draw(userdata) % ARRAY_SIZE(edges)];
	case WILD_ONES:
		return UINT64_MAX;
	default:
		return draw(userdata);
	}
}

static void put_value(uint8_t *at, uint64_t v, uint32_t size)
{
	memcpy(at, &v, MIN(size, (uint32_t)sizeof(v)));
}

static void put_word(uint8_t *at, uint32_t len, draw_t draw, void *userdata)
{
	for (uint32_t i = 0; i < len; i++)
		at[i] = (uint8_t)('a' + draw(userdata) % 26);
	at[len] = '\0';
}

/* libtraceevent takes every array of bytes for text. */
static bool is_text(const struct field *f)
{
	return f->is_string && strstr(f->type, "char");
}

#define SOCKADDR_SIZE 28 /* struct sockaddr_in6 */

static void put_array(const struct field *f, enum wildness wild, draw_t draw, void *userdata,
		      uint8_t *at, uint32_t len)
{
	uint32_t each = MAX(f->element_size, 1U);

	for (uint32_t i = 0; i + each <= len; i += each)
		put_value(at + i, wild_value(wild, each, draw, userdata), each);
	/* Tests of these events cover invalid families. */
	if (len == SOCKADDR_SIZE)
		put_value(at, draw(userdata) % 2 ? 2 : 10, 2);
}

static bool has_sockaddr(const struct event *ev)
{
	size_t len;
	const char *text = event_format_text(ev, &len);

	return memmem(text, len, "__get_sockaddr(", 15) != NULL;
}

/* Finds what a location points to; returns its length. */
static uint32_t put_dynamic(const struct event *ev, const struct field *f, enum wildness wild,
			    draw_t draw, void *userdata, uint8_t *at)
{
	uint32_t len = wild == WILD_ZERO ? 0 : (uint32_t)(draw(userdata) % 12);

	if (is_text(f)) {
		put_word(at, len, draw, userdata);
		return len + 1;
	}
	len *= MIN(f->element_size, 64U);
	if (strstr(f->type, "cpumask"))
		len = 8;
	else if (f->element_size == 1 && has_sockaddr(ev))
		len = SOCKADDR_SIZE;
	put_array(f, wild, draw, userdata, at, len);
	return len;
}

static void put_field(const struct field *f, enum wildness wild, draw_t draw, void *userdata,
		      uint8_t *at)
{
	uint64_t v;

	if (is_text(f)) {
		put_word(at, f->size ? (uint32_t)(draw(userdata) % f->size) : 0, draw, userdata);
	} else if (f->is_array) {
		put_array(f, wild, draw, userdata, at, f->size);
	} else {
		v = wild_value(wild, f->size, draw, userdata);
		/* Other values of a bool are undefined in C. */
		put_value(at, strcmp(f->type, "bool") == 0 ? v & 1 : v, f->size);
	}
}

uint32_t make_record(const struct event *ev, enum wildness wild, draw_t draw, void *userdata,
		     uint8_t *data)
{
	uint32_t end = 8, len, loc;

	for (size_t i = 0; i < ev->field_count; i++)
		end = MAX(end, ev->fields[i].offset + ev->fields[i].size);
	end = (end + 7) / 8 * 8;
	memset(data, 0, RECORD_MAX);
	if (end > RECORD_MAX / 2)
		return 0;
	memcpy(data, &ev->id, sizeof(ev->id));
	for (size_t i = 0; i < ev->field_count; i++) {
		const struct field *f = &ev->fields[i];

		if (!f->is_dynamic && !f->is_relative) {
			put_field(f, wild, draw, userdata, data + f->offset);
			continue;
		}
		len = end > RECORD_MAX - 1024
			      ? 0
			      : put_dynamic(ev, f, wild, draw, userdata, data + end);
		loc = (f->is_relative ? end - f->offset - 4 : end) | len << 16;
		memcpy(data + f->offset, &loc, sizeof(loc));
		end = (end + len + 7) / 8 * 8;
	}
	return end;
}
