/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What convert gives up before it looks into a file that may be anybody's: to write or make files
 * but in and below the folders of its output and its temporary ones, to execute programs, to
 * connect by TCP. It goes on reading what its caller may: programs that a recording names are
 * opened for their functions' names.
 */
#pragma once

#include "result_file.h"

/* For good. Where the kernel can't, nothing changes: it is one wall of several. */
void confine(const struct result_file *output);
