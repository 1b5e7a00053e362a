/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Unpacks a stream's messages into trace_info. Each kind has its own memory budget, so that none
 * takes the others' room. trace_info owns the unpacked messages.
 */
#pragma once

#include "trace/bounds.h"
#include "trace/trace_info.h"

struct info_messages {
	struct budget tasks, clocks, stats, mappings, histograms, others;
	bool clocks_full;
};

/* m must not move afterwards. It owns nothing to free. */
void info_messages_init(struct info_messages *m);

/*
 * Adds the payload of a chunk. Types without such a message are ignored. If a message that comes
 * once is repeated, the first one stays; a second END is damage. -EBADMSG: damaged. -EFBIG: too
 * many. -ENOMEM.
 */
int info_messages_add(struct info_messages *m, struct trace_info *info, unsigned type,
		      const void *data, size_t len);
/* For a followed stream: after info.task_readings were used, returns their memory to the budget. */
void info_messages_forget_readings(struct info_messages *m, struct trace_info *info);

/* Frees what info owns. m must not be used any more. */
void trace_info_deinit(struct trace_info *info);
