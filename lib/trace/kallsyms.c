/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/kallsyms.h"

#include "trace/last_boot.h"

void kallsyms_init(struct kallsyms *k, const struct stream_reader *reader, struct bounds *bounds)
{
	*k = (struct kallsyms){ .reader = reader, .bounds = bounds };
}

static int kallsyms_read_chunk(struct kallsyms *k, const struct chunk *chunk, struct buf *text,
			       struct symbols **all)
{
	int r = stream_reader_load_max(k->reader, chunk, bounds_payload_max(CHUNK_KALLSYMS), text,
				       NULL);

	if (r == 0)
		r = bounds_take(k->bounds, CHUNK_KALLSYMS, text->len);
	if (r < 0)
		return r;
	if (k->moved)
		last_boot_move_symbols(k->moved, text);
	/* Later chunks hold modules' symbols. */
	return symbols_take(all, text);
}

/* A symbol_source_t. */
static struct symbols *kallsyms_load(void *userdata)
{
	struct kallsyms *k = userdata;
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct symbols *all = NULL;

	for (size_t i = 0; i < k->count; i++) {
		int r = kallsyms_read_chunk(k, &k->chunks[i], &text, &all);

		if (r < 0)
			k->result = r;
	}
	return all;
}

int kallsyms_add(struct kallsyms *k, struct event_table *events, const struct chunk *chunk,
		 struct buf *payload, struct error *err)
{
	int r = k->count == KALLSYMS_CHUNKS_MAX
			? -EFBIG
			: stream_reader_verify(k->reader, chunk, payload, err);

	if (r < 0)
		return r;
	k->chunks[k->count++] = *chunk;
	event_table_set_symbols(events, kallsyms_load, k);
	return 0;
}

int kallsyms_add_late(struct kallsyms *k, struct event_table *events, const struct chunk *chunk,
		      struct buf *payload, struct error *err)
{
	int r;

	if (!event_table_has_symbols(events) || k->late_count == KALLSYMS_CHUNKS_MAX)
		return error_set(err, event_table_has_symbols(events) ? -EFBIG : -EBADMSG,
				 "symbols of modules come before the kernel's");
	r = stream_reader_load_max(k->reader, chunk, bounds_payload_max(CHUNK_KALLSYMS), payload,
				   err);
	if (r == 0)
		r = bounds_take(k->bounds, CHUNK_KALLSYMS, payload->len);
	if (r < 0)
		return r;
	k->late_count++;
	return event_table_add_symbols(events, payload->data, payload->len);
}

int kallsyms_take_result(struct kallsyms *k)
{
	int r = k->result;

	k->result = 0;
	return r;
}
