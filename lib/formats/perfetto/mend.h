/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Repairs a truncated Perfetto trace: see export/mend.h. */
#pragma once

#include <sys/types.h>

/* Truncates after the last whole packet. 0: none has events. -EBADMSG: not a trace. */
int pf_mend(int fd, off_t size);
