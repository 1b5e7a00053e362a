/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads that make a kernel fire many different events. */
#pragma once

#include <stddef.h>

struct oracle_load {
	const char *name;
	/* dir: an empty folder to work in; instance: an open tracefs instance, for marks. */
	void (*run)(const char *dir, int instance);
};

const struct oracle_load *oracle_loads(size_t *ret_count);
