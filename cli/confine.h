/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Drops rights before `convert` reads a file of unknown origin: afterwards it can't write outside
 * of its output and temporary folders, execute programs or connect by TCP. It can still read what
 * its caller can: naming functions needs the recorded programs.
 */
#pragma once

#include "output/name.h"

/* Irreversible. Without kernel support it does nothing: it is one protection of several. */
void confine(const struct output_name *output);
