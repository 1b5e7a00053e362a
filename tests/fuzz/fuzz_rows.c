/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The bytes as a report's JSON that becomes rows, as lines of rows, and as their zstd. */
#include "fuzz.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/io.h"
#include "fleet/rows.h"

#define LARGEST (1U << 20)

static int file_of(const void *data, size_t size)
{
	int fd = memfd_create("rows", MFD_CLOEXEC);

	if (fd < 0 || write_full(fd, data, size) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	return fd;
}

static void unpack(const void *data, size_t size)
{
	_cleanup_close_ int from = file_of(data, size), to = file_of("", 0);
	_cleanup_error_ struct error err = ERROR_INIT;
	uint64_t len;
	int r = rows_unpack(from, size, to, LARGEST, &len, &err);

	if (r < 0 ? !err.message : len > LARGEST || (uint64_t)lseek(to, 0, SEEK_END) != len)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int from = file_of(data, size), to = file_of("", 0);
	size_t room = ZSTD_compressBound(size), len;
	_cleanup_free_ char *packed = malloc(room);

	if (!packed)
		abort();
	unpack(data, size);
	len = ZSTD_compress(packed, room, data, size, 1);
	if (ZSTD_isError(len))
		abort();
	unpack(packed, len);
	if (rows_pack(from, to, NULL) == 0) {
		off_t end = lseek(to, 0, SEEK_END);
		uint64_t json;

		/* Names of reports may be nothing that rows can have. */
		lseek(to, 0, SEEK_SET);
		rows_unpack(to, (uint64_t)end, -EBADF, LARGEST, &json, NULL);
	}
	return 0;
}
