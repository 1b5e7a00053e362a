/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The packets that tell what recording a trace was made of: proto/origin.proto. */
#pragma once

#include "base/buf.h"
#include "export/export.h"
#include "trace/trace_info.h"

/*
 * Raise it when the fields of generic events get other numbers, or a rest's kinds another form.
 * Other formats, messages and rests need no new version.
 */
#define ORIGIN_VERSION 1

/* At the trace's head. Both: 0 or -ENOMEM. */
int pf_put_origin(const struct trace_info *info, bool legacy_generic, bool raw_addresses,
		  struct buf *out);
/* At the end of all. whole: all events are in this file, so that the kernel's counts are of it. */
int pf_put_origin_end(const struct trace_info *info, const struct export_result *result, bool whole,
		      struct buf *out);
