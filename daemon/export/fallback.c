/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What no program could be made for: libtraceevent prints it. */
#include <string.h>

#include "export/printer.h"

int fallback_print(struct printer *p, const struct event *ev, const struct record *rec,
		   struct buf *out)
{
	struct event_table *t = (struct event_table *)p->table;
	struct tep_record record = {
		.ts = rec->ts,
		.size = (int)rec->len,
		.data = (void *)rec->data,
	};

	p->fallbacks++;
	if (!p->has_seq) {
		trace_seq_init(&p->seq);
		p->has_seq = true;
	}
	buf_puts(out, ev->name);
	buf_puts(out, ": ");
	/* libtraceevent reads fields without a look at the record's length. */
	for (size_t i = 0; i < ev->field_count; i++)
		if (ev->fields[i].offset + ev->fields[i].size > rec->len) {
			buf_puts(out, "[truncated]");
			return buf_error(out) < 0 ? -ENOMEM : -EBADMSG;
		}
	trace_seq_reset(&p->seq);
	pthread_mutex_lock(&t->tep_lock);
	tep_print_event(t->printing, &p->seq, &record, "%s", TEP_PRINT_INFO);
	pthread_mutex_unlock(&t->tep_lock);
	if (p->seq.state == TRACE_SEQ__GOOD)
		buf_append(out, p->seq.buffer, p->seq.len);
	return buf_error(out);
}
