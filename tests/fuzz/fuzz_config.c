/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A configuration, and one that is read over it. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "service/config.h"
#include "util/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("conf", MFD_CLOEXEC);
	_cleanup_config_ struct config config = { 0 };
	_cleanup_buf_ struct buf warnings = BUF_INIT;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (size > 64 << 10 || fd < 0 || write_full(fd, data, size) < 0 || config_init(&config) < 0)
		return 0;
	for (int i = 0; i < 2; i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		int r = config_load(&config, path, true, &warnings, &err);

		if (r < 0 && !err.message)
			abort();
		if (r == 0 && (!config.socket || !config.spool_dir || !config.state_dir ||
			       !config.clients || !config.sessions))
			abort();
	}
	return 0;
}
