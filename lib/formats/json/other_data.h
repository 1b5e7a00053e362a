/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The JSON's member otherData: machine, request, clocks and how they are tied, the account. */
#pragma once

#include "export/export.h"
#include "formats/json/portable.h"

/* Its members, without its braces. sync: what the text has of it. */
void json_put_other_data(struct buf *b, const struct trace_info *info,
			 const struct mark_feed *marks, const struct clock_sync *sync,
			 const struct export_result *result);

/* What the recorder noted when it wrote the mark of that id; NULL: it did not write it. */
const Traced__Capture__Clocks *json_find_noted(const struct trace_info *info, const char *id);
