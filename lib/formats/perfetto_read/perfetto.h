/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A Perfetto trace that traced wrote, turned back into a capture stream: records are made anew of
 * their messages and of what the trace has beside them (docs/perfetto.md).
 */
#pragma once

#include "formats/import.h"
#include "stream/writer.h"

int perfetto_import(int in, struct stream_writer *w, const struct import_options *o,
		    struct error *err);
