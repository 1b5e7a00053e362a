/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Static programs: stand-ins for libzstd's readers of frames before version 0.8, which take 85 kB
 * and would read hostile captures. Nothing that we read was ever written so. Each returns an error.
 */
#include <stddef.h>

/* libzstd's general error. */
#define GENERIC ((size_t)-1)

#define OLD_VERSION(v)                                                                             \
	OLD_CREATE(ZSTD##v##_createDCtx)                                                           \
	OLD_CREATE(ZBUFF##v##_createDCtx)                                                          \
	OLD_FAIL(ZSTD##v##_freeDCtx)                                                               \
	OLD_FAIL(ZBUFF##v##_freeDCtx)                                                              \
	OLD_FAIL(ZSTD##v##_getFrameParams)                                                         \
	OLD_FAIL(ZSTD##v##_decompress_usingDict)                                                   \
	OLD_FAIL(ZBUFF##v##_decompressInitDictionary)                                              \
	OLD_FAIL(ZBUFF##v##_decompressContinue)                                                    \
	void ZSTD##v##_findFrameSizeInfoLegacy(const void *data, size_t size, size_t *ret_size,    \
					       unsigned long long *ret_bound);                     \
	void ZSTD##v##_findFrameSizeInfoLegacy(const void *data, size_t size, size_t *ret_size,    \
					       unsigned long long *ret_bound)                      \
	{                                                                                          \
		(void)data;                                                                        \
		(void)size;                                                                        \
		*ret_size = GENERIC;                                                               \
		*ret_bound = (unsigned long long)-2;                                               \
	}
#define OLD_CREATE(name)                                                                           \
	void *name(void);                                                                          \
	void *name(void)                                                                           \
	{                                                                                          \
		return NULL;                                                                       \
	}
#define OLD_FAIL(name)                                                                             \
	size_t name(void);                                                                         \
	size_t name(void)                                                                          \
	{                                                                                          \
		return GENERIC;                                                                    \
	}

OLD_VERSION(v05)
OLD_VERSION(v06)
OLD_VERSION(v07)
