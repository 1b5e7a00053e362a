/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A sink that watches a recording while it is made. Its output are frames: a 32-bit little-endian
 * length, then a Firing of control.proto, each time that one of export_options.watch is met. An
 * interval that a loss may have cut meets no condition.
 */
#pragma once

#include "report/watch_condition.h"

/* Between two parts of a followed stream; further ones of a condition are only counted. */
#define WATCH_BURST 64U
/* Bytes of Firing.what. */
#define WATCH_WHAT_MAX 512U
/* No frame is longer. */
#define WATCH_FRAME_MAX 1024U

extern const struct sink_ops watch_sink_ops;
