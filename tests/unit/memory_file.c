/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "memory_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"

int memory_file(const void *data, size_t len)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, data, len), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

void memory_file_read(int fd, struct buf *out)
{
	struct stat st;
	char *p;

	buf_clear(out);
	assert_int_equal(fstat(fd, &st), 0);
	p = buf_reserve(out, (size_t)st.st_size);
	assert_non_null(p);
	assert_int_equal(pread_full(fd, p, (size_t)st.st_size, 0), st.st_size);
	out->len = (size_t)st.st_size;
	assert_non_null(buf_string(out));
}
