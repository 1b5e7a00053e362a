/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes what hosts recorded into files here. */
#pragma once

#include "formats/formats.h"
#include "host.h"
#include "join.h"

/*
 * Before a recording: opens each output and removes it again, and checks their options. Returns 0
 * or an exit status; errors are printed.
 */
int hosts_try_outputs(const struct options *o, const struct host_list *hosts, const char *out,
		      const struct export_format *format);
/*
 * Writes complete captures as the format. several: the command named several hosts, which become
 * one file, or a file each if they stay captures. Then prints o->reports; without o->output, only
 * these. Returns an exit status; errors are printed.
 */
int hosts_write_captures(const struct options *o, struct host_input *inputs, size_t count,
			 bool several, const char *out, const struct export_format *format,
			 struct error *err);
/* After a failure: gives the captures names in a folder of their own, which is printed. */
void hosts_keep_captures(const struct host_input *inputs, size_t count);
