/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "fuzz.h"

/*
 * ASan keeps freed memory for a while, with the stacks of its users: by default 256 MiB and 30
 * frames. Each run then gets memory from pages that were never touched.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=8:malloc_context_size=8";
}

int input_file(const uint8_t *data, size_t size)
{
	static int fd = -EBADF;

	if (fd < 0)
		fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0 || write_full(fd, data, size) < 0 ||
	    ftruncate(fd, (off_t)size) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	return fd;
}
