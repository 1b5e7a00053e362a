/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files that commands read. */
#pragma once

#include "util/error.h"

/* What can be read from fd, which stays open, in a nameless file at its start. */
int input_keep(int fd, struct error *err);
