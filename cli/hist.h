/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Histograms as --hist takes them, written from the options of `hist`. */
#pragma once

#include "base/buf.h"
#include "cli.h"

/*
 * Appends "sched_switch:keys=next_comm,next_pid.log2:vals=prev_state:size=4096 if next_prio < 100":
 * the event, the keys, and the options' values, size and filter.
 */
void hist_put(const struct options *o, const char *event, const struct key_option *keys,
	      size_t key_count, struct buf *out);
