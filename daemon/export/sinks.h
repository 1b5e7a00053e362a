/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of output formats, and what its members share. */
#pragma once

#include "export/sink.h"

extern const struct sink_ops sink_text_ops, sink_text_gz_ops, sink_json_ops, sink_json_gz_ops,
	sink_perfetto_ops, sink_perfetto_gz_ops, sink_profile_ops, sink_stream_ops, sink_dat_ops,
	sink_html_ops, sink_ctf_ops;

/* By a format's name; NULL: none. */
const struct sink_ops *sink_find(const char *name);

/* Appends an event's name and details as event_print does, also of an event without a format. */
int sink_print(struct printer *printer, const struct trace_event *ev, struct buf *out);
