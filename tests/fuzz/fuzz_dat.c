/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A trace.dat, turned into a capture stream. */
#include "fuzz.h"
#include "import_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	import_check(data, size);
	return 0;
}
