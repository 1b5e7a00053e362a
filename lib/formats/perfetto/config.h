/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The recording's request as Perfetto's configuration. */
#pragma once

#include "formats/perfetto/packet.h"
#include "trace/trace_info.h"

struct perfetto_options;

/* Appends the packet `trace_config`; nothing, if the recording has no request. 0 or -ENOMEM. */
int pf_put_config(const struct trace_info *info, const struct perfetto_options *o, struct buf *out);
