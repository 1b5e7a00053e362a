/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The bytes that a test has on the heap; a sanitizer's allocator reports nothing. */
#pragma once

#include <malloc.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static inline size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}
