/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/meminfo.h"

#include <fcntl.h>
#include <string.h>

#include "base/io.h"

static uint64_t meminfo_read(const char *proc, const char *field)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[256];
	const char *p;

	snprintf(path, sizeof(path), "%s/meminfo", proc);
	if (read_file_at(AT_FDCWD, path, 1 << 16, &text) < 0 || !buf_string(&text))
		return 0;
	p = strstr(text.data, field);
	return p ? strtoull(p + strlen(field), NULL, 10) * 1024 : 0;
}

uint64_t meminfo_available(const char *proc)
{
	return meminfo_read(proc, "MemAvailable:");
}

uint64_t meminfo_total(const char *proc)
{
	return meminfo_read(proc, "MemTotal:");
}
