/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* --net-arrows: what an output draws of the report net. It reads the recordings once before. */
#pragma once

#include "../cli.h"
#include "export/export.h"
#include "report/net_traffic.h"

struct export_format;

struct arrow_pass {
	struct net_traffic traffic;
	int fd; /* owned; the report's unused output; negative: no arrows are wanted */
};

/* Before the input is parsed. -EINVAL: the format draws no arrows. Deinit it in any case. */
int arrow_pass_open(struct arrow_pass *ret, const struct options *o,
		    const struct export_format *format, struct error *err);
/*
 * Reads a recording that is exported with these options. Returns its number, or -errno; -ENODATA:
 * it has no events for arrows.
 */
int arrow_pass_read(struct arrow_pass *p, int stream_fd, const char *label,
		    const struct export_options *options, struct error *err);
/* After the last recording. between: machines may have arrows to one another. 0 or -errno. */
int arrow_pass_end(struct arrow_pass *p, bool between, struct error *err);
void arrow_pass_deinit(struct arrow_pass *p);
#define _cleanup_arrow_pass_ _cleanup_(arrow_pass_deinit)
