/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A capture stream through the whole exporter, as text and as JSON. */
#include "fuzz.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "export/export.h"
#include "util/io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const formats[] = { "txt", "json" };
	_cleanup_close_ int fd = memfd_create("stream", MFD_CLOEXEC);
	_cleanup_close_ int out = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || out < 0 || write_full(fd, data, size) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		_cleanup_error_ struct error err = ERROR_INIT;
		_cleanup_export_result_ struct export_result result;
		struct export_options o = { .format = formats[i], .tgid = true };
		uint64_t events = 0;

		if (export_stream(fd, out, &o, &result, &err) < 0)
			continue;
		for (size_t j = 0; j < result.ledger_count; j++)
			events += result.ledger[j].events;
		if (events != result.events)
			abort();
	}
	return 0;
}
