/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a crash or a full disk left of a file, made one that its readers open. */
#pragma once

#include "base/error.h"
#include "formats/formats.h"

/*
 * fd: for reading and writing; format: of export_formats(). Cuts off what is not whole (a
 * packet, a line), and closes what has to be closed. 1; 0: nothing is left; or -errno. Of a
 * compressed file all is kept: its reader gives out what there is, and says that it was cut.
 */
int salvage(int fd, const char *format, struct error *err);
