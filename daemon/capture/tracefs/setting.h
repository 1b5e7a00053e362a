/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of tracefs say what is set in other words than those that set it. */
#pragma once

#include "base/buf.h"

/*
 * Appends what has to be written to file so that it reads as text again. -EBUSY: that can't be
 * put into one write (the CPUs' buffers have different sizes).
 */
int setting_text(const char *file, const char *text, struct buf *out);

/* A tracer's own option: before about Linux 6.19 one value for all instances. */
bool setting_is_tracer_option(const char *name);
