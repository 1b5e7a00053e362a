/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes what hosts recorded into files here. */
#pragma once

#include "formats/formats.h"
#include "join.h"

/*
 * Writes complete captures as the format. several: the command named several hosts, which become
 * one file, or a file each if they stay captures. Returns an exit status; errors are printed.
 */
int hosts_write_captures(const struct options *o, struct join_input *inputs, size_t count,
			 bool several, const char *out, const struct export_format *format,
			 struct error *err);
