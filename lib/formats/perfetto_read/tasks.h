/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A ProcessTree, back into a TASKS chunk. */
#pragma once

#include "formats/perfetto_read/packets.h"
#include "stream/writer.h"

/* 0, -EBADMSG: it makes no sense, or is too much; or the writer's errors. */
int tasks_import(struct stream_writer *w, const struct pf_packet *p, struct error *err);
