/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "marks/crash_log.h"

#include "base/io.h"
#include "base/vec.h"

static bool is_digit(const struct text *t)
{
	return t->len && *t->data >= '0' && *t->data <= '9';
}

static void skip(struct text *t, uint32_t count)
{
	t->data += count;
	t->len -= count;
}

static bool take(struct text *t, char c)
{
	if (!t->len || *t->data != c)
		return false;
	skip(t, 1);
	return true;
}

/* Returns the number of digits. 0: none, or too many. */
static unsigned take_digits(struct text *t, uint64_t *ret)
{
	unsigned digits = 0;

	*ret = 0;
	for (; is_digit(t); skip(t, 1))
		if (++digits <= 10)
			*ret = *ret * 10 + (uint64_t)(*t->data - '0');
	return digits <= 10 ? digits : 0;
}

/* "<6>[   12.345678] text": the level may be absent. False: the line has no time. */
static bool crash_line_read(struct text line, struct crash_line *ret)
{
	uint64_t seconds, micros, level;

	if (take(&line, '<') && (!take_digits(&line, &level) || !take(&line, '>')))
		return false;
	if (!take(&line, '['))
		return false;
	while (take(&line, ' '))
		;
	if (!take_digits(&line, &seconds) || !take(&line, '.') ||
	    take_digits(&line, &micros) != 6 || !take(&line, ']'))
		return false;
	take(&line, ' ');
	*ret = (struct crash_line){ seconds * NSEC_PER_SEC + micros * NSEC_PER_USEC, line };
	return line.len > 0;
}

static int crash_log_add_file(struct crash_log *log, const Traced__Capture__PstoreFile *file,
			      bool timed)
{
	const char *p = (const char *)file->text.data, *end = p + file->text.len;

	while (file->text.len && p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p)) ?: end;
		struct text line = { p, (uint32_t)(nl - p) };
		struct crash_line found;

		/* The first line is pstore's own: "Panic#1 Part1". */
		if (!timed || !crash_line_read(line, &found))
			log->untimed += p != (const char *)file->text.data && line.len > 0;
		else if (log->count == CRASH_LINES_MAX)
			log->too_many++;
		else if (vec_push(log->lines, log->count, log->cap, found) < 0)
			return -ENOMEM;
		p = nl < end ? nl + 1 : end;
	}
	return 0;
}

static int crash_lines_compare(const void *a, const void *b)
{
	const struct crash_line *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	/* Lines of one file are in its order. */
	return (x->text.data > y->text.data) - (x->text.data < y->text.data);
}

int crash_log_read(struct crash_log *ret, const struct trace_info *info)
{
	const Traced__Capture__LastBoot *boot = info->last_boot;
	bool timed = strcmp(info->header->trace_clock, "local") == 0;
	struct crash_log log = { 0 };
	int r = 0;

	*ret = log;
	for (size_t i = 0; r == 0 && boot && i < boot->n_pstore; i++)
		r = crash_log_add_file(&log, boot->pstore[i], timed);
	if (r < 0) {
		crash_log_deinit(&log);
		return r;
	}
	if (log.count)
		qsort(log.lines, log.count, sizeof(*log.lines), crash_lines_compare);
	*ret = log;
	return 0;
}

void crash_log_deinit(struct crash_log *log)
{
	free(log->lines);
	*log = (struct crash_log){ 0 };
}

/* No process made them: they are marks of all. */
static void crash_fill(struct mark *ret, struct text name, uint64_t ts)
{
	*ret = (struct mark){ .phase = PHASE_INSTANT, .instant = 'g', .ts = ts };
	ret->part[PART_NAME] = name;
	ret->part[PART_CAT] = TEXT("crash");
}

bool crash_log_next(struct crash_log *log, struct mark *ret)
{
	if (log->next == log->count)
		return false;
	crash_fill(ret, log->lines[log->next].text, log->lines[log->next].ts);
	log->next++;
	return true;
}

void crash_mark(struct mark *ret, uint64_t ts)
{
	crash_fill(ret, TEXT("the last event before the machine started anew"), ts);
}
