/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/sync_scan.h"

#include <string.h>

#include "base/bytes.h"
#include "base/vec.h"
#include "trace/index.h"
#include "trace/merge.h"

static bool is_id_char(char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '-' ||
	       c == '_';
}

size_t sync_id_length(const char *text, size_t len, const char **ret_id)
{
	static const char head[] = "trace_event_clock_sync: name=";
	size_t n = sizeof(head) - 1, end = n;

	if (len <= n || memcmp(text, head, n) != 0)
		return 0;
	while (end < len && is_id_char(text[end]))
		end++;
	*ret_id = text + n;
	/* Trailing text would make it another mark to readers, or none. */
	if (end < len && text[end] != '\n' && text[end] != '\0')
		return 0;
	return end - n <= SYNC_ID_MAX ? end - n : 0;
}

const struct kernel_sync *sync_scan_find(const struct sync_scan *s, const char *id)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->syncs[i].id, id) == 0)
			return &s->syncs[i];
	return NULL;
}

static int sync_add(struct sync_scan *s, uint64_t ts, const char *id, size_t len)
{
	struct kernel_sync *one;

	if (s->count == SYNC_SCAN_MAX)
		return 0;
	if (vec_reserve_exact(s->syncs, s->count, 1) < 0)
		return -ENOMEM;
	one = &s->syncs[s->count];
	*one = (struct kernel_sync){ .ts = ts };
	memcpy(one->id, id, len);
	s->count += !sync_scan_find(s, one->id);
	return 0;
}

static int sync_take_record(struct sync_scan *s, const struct record *rec)
{
	const char *text = memmem(rec->data, rec->len, "trace_event_clock_sync: name=", 29), *id;
	size_t len;

	if (!text)
		return 0;
	len = sync_id_length(text, rec->len - (size_t)(text - (const char *)rec->data), &id);
	return len ? sync_add(s, rec->ts, id, len) : 0;
}

int sync_scan_once(struct stream_index *index, const struct stream_reader *reader,
		   struct error *err)
{
	const struct event *print = event_table_find_name(index->info.events, "ftrace", "print");
	_cleanup_(merge_freep) struct merge *merge = NULL;
	struct sync_scan *s = &index->info.syncs;
	bool big = index->info.header->big_endian;
	struct merge_item item;
	int r;

	if (s->done)
		return 0;
	if (!print) {
		s->done = true;
		return 0;
	}
	r = merge_new(&merge, &index->info.layout, &index->rings[BUFFER_MAIN], reader, err);
	while (r >= 0 && (r = merge_next(merge, &item, err)) > 0) {
		if (r != MERGE_RECORD || item.event.rec.len < 2 ||
		    load_u16(item.event.rec.data, big) != print->id)
			continue;
		if (sync_take_record(s, &item.event.rec) < 0)
			return error_errno(err, -ENOMEM, "can't keep clock sync marks");
	}
	s->done = r == 0;
	return r;
}

void sync_scan_deinit(struct sync_scan *s)
{
	free(s->syncs);
	*s = (struct sync_scan){ 0 };
}
