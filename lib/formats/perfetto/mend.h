/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <sys/types.h>

/* See export/mend.h. */
int pf_mend(int fd, off_t size);
