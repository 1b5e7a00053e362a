/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The messages of a stream, unpacked into trace_info: each kind within a memory of its own, so that
 * none takes the others' room. What was unpacked is trace_info's.
 */
#pragma once

#include "trace/bounds.h"
#include "trace/trace_info.h"

struct info_messages {
	struct budget tasks, clocks, stats, mappings, others;
	bool clocks_full;
};

/* Not to be moved afterwards; nothing of it is to be freed. */
void info_messages_init(struct info_messages *m);

/*
 * The payload of a chunk of that type; of types that hold no such message nothing is done. Of what
 * comes once a second one is passed over, but for an END. -EBADMSG: it is damaged; -EFBIG: too
 * many of them; -ENOMEM.
 */
int info_messages_add(struct info_messages *m, struct trace_info *info, unsigned type,
		      const void *data, size_t len);
/* Of a stream that is followed: info.task_readings were used, and their memory is free again. */
void info_messages_forget_readings(struct info_messages *m, struct trace_info *info);

/* Frees all that info owns, once m is not used any more. */
void trace_info_deinit(struct trace_info *info);
