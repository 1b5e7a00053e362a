/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The histograms of a recording while it runs: their texts go into the stream, unparsed. */
#pragma once

#include "daemon/capture/recording.h"

/* Writes the text of each histogram. What can't be read or written is a warning. 0 or -errno. */
int histograms_write(struct capture *c);
/*
 * The same at most once a second, and less often if it takes long. Leaves out those that have
 * counted nothing since the last call.
 */
int histograms_write_due(struct capture *c, uint64_t now);
