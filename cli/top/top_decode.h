/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The process of `tracectl top` that decodes: it follows the stream, and writes frames
 * (report/frame.h). For root it has another one do that, see confined.h.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "report/report.h"

struct top_decoder {
	pid_t pid;
	int frames; /* owned; to read from; nonblocking */
	/* Owned. The recorder writes to it, or into the file; closing it ends the stream. */
	int stream;
};

/*
 * file: gets the stream; borrowed by the process, too. The process ignores signals; it ends with
 * the stream, or with this process. The options must have names that report_is_live().
 */
int top_decoder_start(struct top_decoder *ret, const struct report_options *options, int file,
		      struct error *err);
/* After the end of its frames: false, if it failed. */
bool top_decoder_end(struct top_decoder *d);
void top_decoder_deinit(struct top_decoder *d);
