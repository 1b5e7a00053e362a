/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A configuration, and another one that is read over it. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/service/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_config_ struct config config = { 0 };
	_cleanup_buf_ struct buf warnings = BUF_INIT;
	char path[64];

	if (size > 64 << 10 || config_init(&config) < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", input_file(data, size));
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
