/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "filter/filter.h"

#include <ctype.h>
#include <event-parse.h>
#include <string.h>

#include "base/visible.h"
#include "filter/syntax.h"

struct filter {
	struct event_filter ops;
	const char *const *texts;
	size_t count;
	struct tep_handle *tep;		/* owned */
	struct tep_event_filter **each; /* owned; of each text */
	const struct trace_info *info;
	bool names; /* some filter compares the name of the event's task */
	struct buf text;
	struct buf record; /* a copy of a record, with zeros behind */
};

static void filter_forget(struct filter *f)
{
	for (size_t i = 0; f->each && i < f->count; i++) {
		if (f->each[i])
			tep_filter_free(f->each[i]);
		f->each[i] = NULL;
	}
	tep_free(f->tep);
	f->tep = NULL;
}

struct filter *filter_free(struct filter *f)
{
	if (!f)
		return NULL;
	filter_forget(f);
	free(f->each);
	buf_deinit(&f->text);
	buf_deinit(&f->record);
	free(f);
	return NULL;
}

/* libtraceevent's pseudo-field "COMM", or "comm" where an event has none. */
static bool filter_has_name(const char *text)
{
	return strcasestr(text, "comm");
}

static int filter_take_formats(struct filter *f, struct error *err)
{
	const struct trace_info *info = f->info;
	size_t count, len;
	const struct event *const *all = event_table_all(info->events, &count);
	const bool big_endian = info->header->big_endian;

	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_file_bigendian(f->tep, big_endian ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
	tep_set_long_size(f->tep, (int)info->header->word_size);
	for (size_t i = 0; i < count; i++) {
		const char *text = event_format_text(all[i], &len);
		enum tep_errno e = tep_parse_event(f->tep, text, len, all[i]->system);

		/* An event that it can't print can still be compared. */
		if (e == TEP_ERRNO__MEM_ALLOC_FAILED)
			return error_errno(err, -ENOMEM, "can't begin the filter");
	}
	return 0;
}

/* A tid's last name; it is corrected where the tid had several lives. */
static int filter_take_names(struct filter *f, struct error *err)
{
	struct task *const *all;
	int32_t last = 0;
	size_t count;

	if (!f->names)
		return 0;
	all = task_table_all(f->info->tasks, &count);
	if (!all)
		return error_errno(err, -ENOMEM, "can't begin the filter");
	for (size_t i = count; i-- > 0;) {
		if (all[i]->tid == last)
			continue;
		last = all[i]->tid;
		if (tep_register_comm(f->tep, all[i]->comm, last) < 0 && errno == ENOMEM)
			return error_errno(err, -ENOMEM, "can't begin the filter");
	}
	return 0;
}

static int filter_explain(const struct filter *f, size_t at, enum tep_errno e, struct error *err)
{
	_cleanup_buf_ struct buf why = BUF_INIT;
	char text[512] = "", *last;
	size_t len;

	if (e == TEP_ERRNO__MEM_ALLOC_FAILED)
		return error_errno(err, -ENOMEM, "can't begin the filter");
	tep_filter_strerror(f->each[at], e, text, sizeof(text));
	/* The lines before the last show the place. */
	len = strlen(text);
	while (len && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	last = strrchr(text, '\n');
	buf_visible(&why, last ? last + 1 : text, VISIBLE_MAX);
	error_set(err, -EINVAL, "--filter '%s': %s", f->texts[at], buf_string(&why) ?: "?");
	if (e == TEP_ERRNO__EVENT_NOT_FOUND)
		return error_hint(err, "events come before a colon: 'sched_switch: next_prio < "
				       "100'; the recording must have them");
	return error_hint(err, FILTER_HINT);
}

static int filter_take_text(struct filter *f, size_t at, struct error *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	enum tep_errno e;
	int r;

	r = filter_syntax_check(f->texts[at], err);
	if (r < 0)
		return r;
	f->each[at] = tep_filter_alloc(f->tep);
	if (!f->each[at] || filter_syntax_translate(f->texts[at], &text) < 0 || !buf_string(&text))
		return error_errno(err, -ENOMEM, "can't begin the filter");
	e = tep_filter_add_filter_str(f->each[at], text.data);
	if (e < 0)
		return filter_explain(f, at, e, err);
	return filter_syntax_check_fields(f->texts[at], f->each[at], f->info->events, err);
}

static int filter_begin(void *userdata, const struct trace_info *info, struct error *err)
{
	struct filter *f = userdata;
	int r;

	/* One filter may be for several exports. */
	filter_forget(f);
	f->info = info;
	f->tep = tep_alloc();
	r = f->tep ? filter_take_formats(f, err)
		   : error_errno(err, -ENOMEM, "can't begin the filter");
	if (r == 0)
		r = filter_take_names(f, err);
	for (size_t i = 0; r == 0 && i < f->count; i++)
		r = filter_take_text(f, i, err);
	return r;
}

static void filter_name_task(struct filter *f, const struct trace_event *ev)
{
	const struct task *task =
		ev->pid > 0 ? task_table_find(f->info->tasks, ev->pid, ev->rec.ts) : NULL;

	if (task && (!task_is_oldest(task) || task_table_until(task) != UINT64_MAX))
		tep_override_comm(f->tep, task->comm, ev->pid);
}

#define RECORD_MAX 65536

/*
 * Bytes that libtraceevent may read for a field: it does not look at the record's length. 0: the
 * field, or the text that it points to, is not in the record. An array at the end may have fewer
 * elements than its format says.
 */
static uint64_t filter_field_end(const struct filter *f, const struct field *field,
				 const struct record *rec)
{
	uint64_t end = (uint64_t)field->offset + field->size, word;

	if (end > rec->len)
		return field->is_array && !field->is_dynamic && end <= RECORD_MAX ? end : 0;
	if (!field->is_dynamic)
		return end;
	if (!record_read_uint(f->info->events, rec, field->offset, sizeof(uint32_t), &word))
		return 0;
	word = (word & 0xffff) + (word >> 16) + (field->is_relative ? end : 0);
	return word <= rec->len ? end : 0;
}

static bool filter_fields_fit(const struct filter *f, const struct field *fields, size_t count,
			      const struct record *rec, uint64_t *end)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t field_end = filter_field_end(f, &fields[i], rec);

		if (!field_end)
			return false;
		*end = MAX(*end, field_end);
	}
	return true;
}

/* Copies the record, with zeros behind: texts need not be terminated. */
static bool filter_copy_record(struct filter *f, const struct trace_event *ev)
{
	const struct event *desc = event_table_find(f->info->events, ev->id);
	uint64_t end = ev->rec.len;
	char *to;

	if (!desc || !filter_fields_fit(f, desc->common, desc->common_count, &ev->rec, &end) ||
	    !filter_fields_fit(f, desc->fields, desc->field_count, &ev->rec, &end))
		return false;
	end += sizeof(uint64_t);
	buf_clear(&f->record);
	to = buf_reserve(&f->record, (size_t)end);
	if (!to)
		return false;
	memcpy(to, ev->rec.data, ev->rec.len);
	memset(to + ev->rec.len, 0, (size_t)end - ev->rec.len);
	return true;
}

static bool filter_takes(void *userdata, const struct trace_event *ev)
{
	struct filter *f = userdata;
	struct tep_record record = {
		.ts = ev->rec.ts,
		.cpu = (int)ev->cpu,
		.size = (int)ev->rec.len,
	};

	if (!filter_copy_record(f, ev))
		return false;
	record.data = f->record.data;
	if (f->names)
		filter_name_task(f, ev);
	for (size_t i = 0; i < f->count; i++)
		if (tep_filter_match(f->each[i], &record) == TEP_ERRNO__FILTER_MATCH)
			return true;
	return false;
}

int filter_new(struct filter **ret, const char *const *texts, size_t count, struct error *err)
{
	_cleanup_(filter_freep) struct filter *f = calloc(1, sizeof(*f));

	if (f) {
		f->texts = texts;
		f->count = count;
		f->each = calloc(count, sizeof(struct tep_event_filter *));
	}
	for (size_t i = 0; f && i < count; i++) {
		f->names |= filter_has_name(texts[i]);
		buf_printf(&f->text, "%s%s", i ? " or " : "", texts[i]);
	}
	if (!f || !f->each || !buf_string(&f->text))
		return error_errno(err, -ENOMEM, "can't begin the filter");
	f->ops = (struct event_filter){ filter_begin, filter_takes, f->text.data, f };
	*ret = TAKE_PTR(f);
	return 0;
}

const struct event_filter *filter_event_filter(const struct filter *f)
{
	return &f->ops;
}
