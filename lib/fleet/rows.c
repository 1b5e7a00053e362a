/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet/rows.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"

#define NO_REPORT "it is no report"
#define REPORTS ",\"reports\":"
#define ROWS ",\"rows\":"
/* A histogram's name has its filter. In JSON each of its 600 characters may be two. */
#define NAME_MAX_LEN 1200

#if HAVE_ZSTD

#include <zstd.h>

#define PIECE (16U << 10)
/* Level 3 of zstd needs 2 MiB; a higher one makes reports hardly smaller. */
#define LEVEL 3
/* A larger window than that of our own files would take memory. */
#define WINDOW_LOG_MAX 23

/* Depths in the JSON: the document, its reports, a report, its rows. */
enum { IN_DOCUMENT = 1, IN_REPORTS, IN_REPORT, IN_ROWS };

/* Bytes of a text in JSON, up to its closing quote; max or more: there is none. */
static size_t rows_name_len(const char *text, size_t max)
{
	size_t n = 0;

	while (n < max && text[n] != '"')
		n += text[n] == '\\' ? 2 : 1;
	return n;
}

struct packing {
	ZSTD_CCtx *zstd;
	int to;
	struct buf line;
	char name[NAME_MAX_LEN + 1]; /* of the report */
	unsigned depth;
	bool in_text, is_escaped;
	bool has_rows;	/* depth IN_ROWS is the array of rows */
	bool has_ended; /* the reports; the last line follows */
};

static int packing_write(struct packing *p, const char *data, size_t len, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = { data, len, 0 };
	char piece[PIECE];
	size_t left;
	int r = 0;

	do {
		ZSTD_outBuffer out = { piece, sizeof(piece), 0 };

		left = ZSTD_compressStream2(p->zstd, &out, &in, end);
		if (ZSTD_isError(left))
			return -ENOMEM;
		r = write_full(p->to, piece, out.pos);
	} while (r == 0 && (end == ZSTD_e_continue ? in.pos < in.size : left));
	return r;
}

static int packing_end_line(struct packing *p)
{
	int r;

	buf_putc(&p->line, '\n');
	r = buf_error(&p->line) ?: packing_write(p, p->line.data, p->line.len, ZSTD_e_continue);
	buf_clear(&p->line);
	return r;
}

/* Removes a suffix of the line. */
static bool packing_cut(struct packing *p, const char *suffix)
{
	size_t len = strlen(suffix);

	if (p->line.len < len || memcmp(p->line.data + p->line.len - len, suffix, len) != 0)
		return false;
	p->line.len -= len;
	return true;
}

/* The line is {"name":"NAME",... */
static int packing_begin_table(struct packing *p)
{
	static const char begin[] = "{\"name\":\"", word[] = "{\"table\":\"";
	const char *line = buf_string(&p->line), *name;
	size_t len;

	if (!line)
		return -ENOMEM;
	if (strncmp(line, begin, strlen(begin)) != 0)
		return -EBADMSG;
	name = line + strlen(begin);
	len = rows_name_len(name, p->line.len - strlen(begin));
	if (len > NAME_MAX_LEN || len >= p->line.len - strlen(begin))
		return -EBADMSG;
	memcpy(p->name, name, len);
	p->name[len] = '\0';
	buf_replace(&p->line, 0, strlen(begin), word, strlen(word));
	buf_putc(&p->line, '}');
	return packing_end_line(p);
}

/* Between rows or reports. */
static bool packing_is_between(const struct packing *p)
{
	return p->depth == IN_ROWS ? p->has_rows : p->depth == IN_REPORTS && !p->has_ended;
}

static int packing_take_between(struct packing *p, char c)
{
	const bool in_rows = p->depth == IN_ROWS;

	if (c == ',')
		return 0;
	if (c == '{') {
		p->depth++;
		if (in_rows)
			buf_printf(&p->line, "{\"report\":\"%s\",", p->name);
		else
			buf_putc(&p->line, '{');
		return 0;
	}
	if (c != ']')
		return -EBADMSG;
	p->depth--;
	if (in_rows)
		buf_printf(&p->line, "{\"end\":\"%s\"", p->name);
	p->has_rows = false;
	p->has_ended = !in_rows;
	return 0;
}

/* A bracket that begins a list which gets lines of its own. 1: it does not. */
static int packing_take_list(struct packing *p)
{
	if (p->depth == IN_DOCUMENT && !p->has_ended && packing_cut(p, REPORTS)) {
		p->depth = IN_REPORTS;
		buf_putc(&p->line, '}');
		return packing_end_line(p);
	}
	if (p->depth == IN_REPORT && packing_cut(p, ROWS)) {
		p->depth = IN_ROWS;
		p->has_rows = true;
		return packing_begin_table(p);
	}
	return 1;
}

static int packing_take(struct packing *p, char c)
{
	int r = 1;

	if (p->in_text) {
		buf_putc(&p->line, c);
		p->in_text = c != '"' || p->is_escaped;
		p->is_escaped = c == '\\' && !p->is_escaped;
		return 0;
	}
	if (c == '\n')
		return 0;
	if (packing_is_between(p))
		return packing_take_between(p, c);
	if (!p->depth && (c != '{' || p->has_ended))
		return -EBADMSG;
	if (c == '[')
		r = packing_take_list(p);
	if (r <= 0)
		return r;
	/* The comma behind the reports. */
	if (p->has_ended && !p->line.len)
		c = c == ',' ? '{' : ' ';
	else
		p->depth += (c == '{' || c == '[') - (c == '}' || c == ']');
	buf_putc(&p->line, c);
	p->in_text = c == '"';
	if (c == '}' && (!p->depth || packing_is_between(p)))
		return packing_end_line(p);
	return 0;
}

static int packing_run(struct packing *p, int from)
{
	char piece[PIECE];
	ssize_t n = 0;
	int r = 0;

	while (r == 0 && (n = read_full(from, piece, sizeof(piece))) > 0)
		for (ssize_t i = 0; i < n && r == 0; i++)
			r = packing_take(p, piece[i]);
	if (r == 0 && n < 0)
		r = (int)n;
	if (r == 0 && (p->depth || !p->has_ended || p->line.len))
		r = -EBADMSG;
	return r ?: packing_write(p, NULL, 0, ZSTD_e_end);
}

int rows_pack(int from, int to, struct error *err)
{
	struct packing p = { .zstd = ZSTD_createCCtx(), .to = to };
	int r = p.zstd ? 0 : -ENOMEM;

	if (r == 0) {
		ZSTD_CCtx_setParameter(p.zstd, ZSTD_c_compressionLevel, LEVEL);
		ZSTD_CCtx_setParameter(p.zstd, ZSTD_c_checksumFlag, 1);
		r = packing_run(&p, from);
	}
	ZSTD_freeCCtx(p.zstd);
	buf_deinit(&p.line);
	if (r == -EBADMSG)
		return error_set(err, r, NO_REPORT);
	return r < 0 ? error_errno(err, r, "can't pack the reports") : 0;
}

struct unpacking {
	int to;
	uint64_t max, size;
	struct buf line, out;
	uint64_t line_count;
	char name[NAME_MAX_LEN + 1]; /* of the report; "": between reports */
	bool has_begun, has_ended, has_table, has_row;
	struct error *err; /* for -EBADMSG */
};

static int unpacking_large(const struct unpacking *u)
{
	return error_set(u->err, -EBADMSG, "its rows have more than %" PRIu64 " KiB", u->max >> 10);
}

/* Takes a prefix with the name of a report in quotes off the line. */
static bool line_take_name(const char **line, size_t *len, const char *prefix,
			   char ret[NAME_MAX_LEN + 1])
{
	size_t skip = strlen(prefix), n;

	if (*len < skip || memcmp(*line, prefix, skip) != 0)
		return false;
	n = rows_name_len(*line + skip, *len - skip);
	if (!n || n > NAME_MAX_LEN || n >= *len - skip)
		return false;
	memcpy(ret, *line + skip, n);
	ret[n] = '\0';
	*line += skip + n + 1;
	*len -= skip + n + 1;
	return true;
}

static bool line_begins(const char *line, size_t len, const char *prefix)
{
	return len > strlen(prefix) && memcmp(line, prefix, strlen(prefix)) == 0;
}

/* Rows and the line behind them. */
static bool unpacking_take_in_table(struct unpacking *u, const char *line, size_t len)
{
	char name[NAME_MAX_LEN + 1];

	if (line_take_name(&line, &len, "{\"report\":\"", name)) {
		if (strcmp(name, u->name) != 0 || len < 2 || line[0] != ',')
			return false;
		buf_puts(&u->out, u->has_row ? ",\n{" : "\n{");
		buf_append(&u->out, line + 1, len - 1);
		u->has_row = true;
		return true;
	}
	if (!line_take_name(&line, &len, "{\"end\":\"", name) || strcmp(name, u->name) != 0)
		return false;
	buf_putc(&u->out, ']');
	buf_append(&u->out, line, len);
	u->name[0] = '\0';
	return true;
}

static bool unpacking_take(struct unpacking *u, const char *line, size_t len)
{
	if (u->has_ended || !len || line[len - 1] != '}')
		return false;
	if (!u->has_begun) {
		u->has_begun = true;
		buf_append(&u->out, line, len - 1);
		buf_puts(&u->out, REPORTS "[");
		return line_begins(line, len, "{\"format\":");
	}
	if (u->name[0])
		return unpacking_take_in_table(u, line, len);
	if (line_take_name(&line, &len, "{\"table\":\"", u->name)) {
		buf_printf(&u->out, "%s\n{\"name\":\"%s\"", u->has_table ? "," : "", u->name);
		buf_append(&u->out, line, len - 1);
		buf_puts(&u->out, ROWS "[");
		u->has_table = true;
		u->has_row = false;
		return true;
	}
	u->has_ended = true;
	buf_puts(&u->out, "],");
	buf_append(&u->out, line + 1, len - 1);
	buf_putc(&u->out, '\n');
	return line_begins(line, len, "{\"first_ns\":");
}

static int unpacking_flush(struct unpacking *u)
{
	int r = buf_error(&u->out);

	u->size += u->out.len;
	if (r == 0 && u->size > u->max)
		r = unpacking_large(u);
	if (r == 0)
		r = u->to < 0 ? 0 : write_full(u->to, u->out.data, u->out.len);
	buf_clear(&u->out);
	return r;
}

static int unpacking_take_piece(struct unpacking *u, const char *data, size_t len)
{
	const char *end;
	int r = 0;

	while (r == 0 && (end = memchr(data, '\n', len))) {
		buf_append(&u->line, data, (size_t)(end - data));
		r = buf_error(&u->line);
		u->line_count++;
		if (r == 0 && !unpacking_take(u, u->line.data ?: "", u->line.len))
			r = error_set(u->err, -EBADMSG, "%s: line %" PRIu64, NO_REPORT,
				      u->line_count);
		if (r == 0 && u->out.len >= PIECE)
			r = unpacking_flush(u);
		buf_clear(&u->line);
		len -= (size_t)(end + 1 - data);
		data = end + 1;
	}
	buf_append(&u->line, data, len);
	return r ?: u->line.len > u->max ? unpacking_large(u) : buf_error(&u->line);
}

static int unpacking_run(struct unpacking *u, ZSTD_DCtx *zstd, int from, uint64_t size)
{
	char piece[PIECE], content[PIECE];
	size_t hint = 1;
	int r = 0;

	while (r == 0 && size) {
		ssize_t n = read_full(from, piece, (size_t)MIN(size, (uint64_t)sizeof(piece)));
		ZSTD_inBuffer in = { piece, n > 0 ? (size_t)n : 0, 0 };
		bool has_more = true;

		if (n <= 0)
			return n < 0 ? (int)n : error_set(u->err, -EBADMSG, "it is cut");
		size -= (uint64_t)n;
		while (r == 0 && (in.pos < in.size || has_more)) {
			ZSTD_outBuffer out = { content, sizeof(content), 0 };

			hint = ZSTD_decompressStream(zstd, &out, &in);
			if (ZSTD_isError(hint))
				return error_set(u->err, -EBADMSG, "zstd: %s",
						 ZSTD_getErrorName(hint));
			r = unpacking_take_piece(u, content, out.pos);
			has_more = out.pos == out.size && hint;
		}
	}
	if (r == 0 && hint)
		r = error_set(u->err, -EBADMSG, "it is cut");
	if (r == 0 && (!u->has_ended || u->line.len))
		r = error_set(u->err, -EBADMSG, NO_REPORT ": its last line is missing");
	return r ?: unpacking_flush(u);
}

int rows_unpack(int from, uint64_t size, int to, uint64_t max, uint64_t *ret, struct error *err)
{
	struct unpacking u = { .to = to, .max = max, .err = err };
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	int r = zstd ? 0 : -ENOMEM;

	if (r == 0) {
		ZSTD_DCtx_setParameter(zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
		r = unpacking_run(&u, zstd, from, size);
	}
	ZSTD_freeDCtx(zstd);
	buf_deinit(&u.line);
	buf_deinit(&u.out);
	*ret = u.size;
	return r < 0 && r != -EBADMSG ? error_errno(err, r, "can't unpack the rows") : r;
}

#else

int rows_pack(int from _unused_, int to _unused_, struct error *err)
{
	return error_set(err, -EOPNOTSUPP, "this build has no zstd");
}

int rows_unpack(int from _unused_, uint64_t size _unused_, int to _unused_, uint64_t max _unused_,
		uint64_t *ret _unused_, struct error *err)
{
	return error_set(err, -EBADMSG, "this build can't read rows: it has no zstd");
}

#endif
