/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Converts what tracefs reads back into the syntax that it accepts. */
#pragma once

#include "base/buf.h"

/* Whether a file of tracefs has that name: "trace_clock"; or "/enable", below any event. */
bool setting_file_ends(const char *file, const char *end);

/*
 * Appends the value to write to file so that it reads as text again. -EBUSY: no single write can
 * do that (the CPUs' buffers differ in size).
 */
int setting_text(const char *file, const char *text, struct buf *out);

/* Strips "no" off an option. Unambiguous: no option's own name begins with "no". */
const char *setting_option_name(const char *option, bool *on);
/* True for a tracer's own option. Before Linux 6.19 these are global, not per instance. */
bool setting_is_tracer_option(const char *name);

/* Returns "integrity" for "none [integrity] confidentiality", else text. Modifies text. */
const char *setting_chosen(char *text);
