/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The event formats that a trace tells: into the table that records are made by, and into the
 * stream; and what numbers the trace gives to its events.
 */
#pragma once

#include "base/error.h"
#include "formats/perfetto_read/bundle.h"
#include "stream/writer.h"
#include "trace/bounds.h"

struct formats {
	struct event_table *table; /* borrowed; not sealed while formats come */
	struct stream_writer *w;   /* borrowed */
	struct bounds bounds;
	struct told_format *all; /* owned */
	size_t count;
	bool *generic; /* owned; by event: the trace has it in a generic form */
	struct buf scratch;
};

int formats_init(struct formats *f, struct event_table *table, struct stream_writer *w);
void formats_deinit(struct formats *f);
/* A traced.origin.Format. 0, -EBADMSG: it is left out; -ENOMEM, or the writer's errors. */
int formats_take(struct formats *f, const struct wire_field *message);
/*
 * Once schema was made, with f->generic: what stands for what in the trace, sorted, as
 * bundles.events. What the messages lack is from here on what the trace says that they lack.
 * ret_unknown: events whose message this build does not know. Once. 0 or -ENOMEM.
 */
int formats_number(struct formats *f, const struct pf_schema *schema, struct bundle_event **ret,
		   size_t *ret_count, uint64_t *ret_unknown);
