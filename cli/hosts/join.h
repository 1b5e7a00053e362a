/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Captures of several machines in one file: docs/hosts.md. */
#pragma once

#include "destination.h"
#include "host_parts.h"

/* -EINVAL, with a hint, if that output can't hold several machines. */
int join_check(const struct options *o, const char *out, struct error *err);
/* -EINVAL: the output's options are not for several machines. */
int join_check_destination(const struct destination *d, struct error *err);
/* Writes all inputs into `out`. Returns the exit status. */
int join_captures(const struct options *o, struct host_input *inputs, size_t count,
		  const char *out);
