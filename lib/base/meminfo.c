/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/meminfo.h"

#include <fcntl.h>
#include <string.h>

#include "base/io.h"

#define MEMINFO_FIELD "MemAvailable:"

uint64_t meminfo_available(const char *proc)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[256];
	const char *p;

	snprintf(path, sizeof(path), "%s/meminfo", proc);
	if (read_file_at(AT_FDCWD, path, 1 << 16, &text) < 0 || !buf_string(&text))
		return 0;
	p = strstr(text.data, MEMINFO_FIELD);
	return p ? strtoull(p + strlen(MEMINFO_FIELD), NULL, 10) * 1024 : 0;
}
