/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Texts of several machines, by time, with a column that names the machine. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "formats/text/join.h"

/* "            task-PID": the task's name ends here. */
#define NAME_WIDTH 16

struct text_part {
	struct part_reader reader;
	const char *line; /* the next one, in the reader; its newline is a zero */
	size_t len;	  /* without that; SIZE_MAX: the end */
	uint64_t ts;	  /* us, of the line or one before it */
	const char *label;
};

static const char *skip_digits(const char *p)
{
	while (isdigit((unsigned char)*p))
		p++;
	return p;
}

/* Reads the time of "NAME-PID (TGID) [CPU] FLAGS SECONDS.MICROSECONDS:". False: there is none. */
static bool line_time(const char *line, size_t len, uint64_t *ret)
{
	const char *p = line + NAME_WIDTH, *end;
	uint64_t seconds, micros;

	if (len <= NAME_WIDTH || *line == '#' || *p != '-' || !isdigit((unsigned char)p[1]))
		return false;
	p = strstr(skip_digits(p + 1), "[");
	if (!p || !(p = strstr(p, "] ")))
		return false;
	p += 2;
	/* The flags, if any, then the time. */
	for (int word = 0; word < 2; word++) {
		p += strspn(p, " ");
		end = skip_digits(p);
		if (end > p && *end == '.' &&
		    sscanf(p, "%" SCNu64 ".%6" SCNu64 ":", &seconds, &micros) == 2) {
			*ret = seconds * 1000000 + micros;
			return true;
		}
		p += strcspn(p, " ");
	}
	return false;
}

#define LINE_MAX_BYTES (64U << 20)

/* 1, 0 at the end, -EFBIG, or -errno. */
static int part_next(struct text_part *p)
{
	struct part_reader *r = &p->reader;
	char *end = NULL;
	uint64_t ts;

	for (size_t len = 4096; !end && len <= LINE_MAX_BYTES; len *= 4) {
		int n = part_reader_need(r, len);

		if (n < 0)
			return n;
		end = memchr(r->ahead.data + r->used, '\n', r->ahead.len - r->used);
		if (r->ahead.len - r->used < len)
			break;
	}
	p->len = SIZE_MAX;
	if (!end)
		return r->ahead.len - r->used ? -EFBIG : 0;
	*end = '\0';
	p->line = r->ahead.data + r->used;
	p->len = (size_t)(end - p->line);
	r->used += p->len + 1;
	if (line_time(p->line, p->len, &ts) && ts > p->ts)
		p->ts = ts;
	return 1;
}

static void part_write(const struct text_part *p, int width, struct output *out)
{
	buf_printf(&out->buf, "%-*s ", width, p->label);
	buf_append(&out->buf, p->line, p->len);
	buf_putc(&out->buf, '\n');
}

/* The first part's lines that explain the columns. */
static int join_write_head(struct text_part *parts, const struct export_part *origins, size_t count,
			   int width, struct output *out)
{
	int r = 0;

	for (size_t i = 0; i < count; i++)
		buf_printf(&out->buf, "# %s: %s\n", origins[i].label, origins[i].tie);
	for (size_t i = 0; r >= 0 && i < count; i++)
		while ((r = part_next(&parts[i])) > 0 && *parts[i].line == '#')
			if (i == 0)
				buf_printf(&out->buf, "#%*s%s\n", width + 1, "", parts[i].line + 1);
	return MIN(r, 0);
}

static int join_lines(struct text_part *parts, size_t count, int width, struct output *out)
{
	int r = 0;

	while (r >= 0) {
		struct text_part *next = NULL;

		for (size_t i = 0; i < count; i++)
			if (parts[i].len != SIZE_MAX && (!next || parts[i].ts < next->ts))
				next = &parts[i];
		if (!next)
			return 0;
		part_write(next, width, out);
		r = part_next(next);
		if (r >= 0)
			r = output_settle(out);
	}
	return r;
}

int text_join(const struct export_part *origins, size_t count,
	      const struct export_result *result _unused_, struct output *out, struct error *err)
{
	struct text_part *parts = calloc(count, sizeof(*parts));
	int r, width = 0;

	if (!parts)
		return error_errno(err, -ENOMEM, "can't join the machines' parts");
	for (size_t i = 0; i < count; i++) {
		parts[i].reader.fd = origins[i].fd;
		parts[i].label = origins[i].label;
		width = MAX(width, (int)strlen(origins[i].label));
	}
	r = join_write_head(parts, origins, count, width, out);
	if (r == 0)
		r = join_lines(parts, count, width, out);
	for (size_t i = 0; i < count; i++)
		buf_deinit(&parts[i].reader.ahead);
	free(parts);
	return r < 0 ? error_errno(err, r, "can't join the machines' parts") : 0;
}
