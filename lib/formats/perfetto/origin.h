/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Packets that describe the original recording: proto/origin.proto. */
#pragma once

#include "base/buf.h"
#include "export/export.h"
#include "trace/trace_info.h"

/*
 * Raise it when the fields of generic events get other numbers, or a rest's kinds another form.
 * Other formats, messages and rests need no new version.
 */
#define ORIGIN_VERSION 1

/* For the trace's head. Both return 0 or -ENOMEM. */
int pf_put_origin(const struct trace_info *info, bool legacy_generic, bool raw_addresses,
		  struct buf *out);
/* For the end. whole: all events are in this file, so the kernel's counts apply to it. */
int pf_put_origin_end(const struct trace_info *info, const struct export_result *result, bool whole,
		      struct buf *out);
