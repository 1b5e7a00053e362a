/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The JSON's member otherData: machine, request, clocks and their ties, the account. */
#pragma once

#include "export/export.h"
#include "formats/json/portable.h"

/* Appends the members without braces. sync: the sync mark in the text. */
void json_put_other_data(struct buf *b, const struct trace_info *info,
			 const struct mark_feed *marks, const struct clock_sync *sync,
			 const struct export_result *result);

/* Appends the members that tell how many events there are, and of what is missing. */
void json_put_account(struct buf *b, const struct export_result *result);

/* The recorder's readings when it wrote the mark of that id; NULL: not the recorder's. */
const Traced__Capture__Clocks *json_find_noted(const struct trace_info *info, const char *id);
