/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Static programs: stand-ins for libzstd's compressors of levels above 3, which take 210 kB and are
 * never used here. Each returns an error.
 */
#include <stddef.h>

/* libzstd's general error. */
#define GENERIC ((size_t)-1)

#define STAND_IN(name)                                                                             \
	size_t name(void);                                                                         \
	size_t name(void)                                                                          \
	{                                                                                          \
		return GENERIC;                                                                    \
	}
/* One for input alone, one for input that follows other, and those for dictionaries. */
#define COMPRESSOR(strategy)                                                                       \
	STAND_IN(ZSTD_compressBlock_##strategy)                                                    \
	STAND_IN(ZSTD_compressBlock_##strategy##_extDict)                                          \
	STAND_IN(ZSTD_compressBlock_##strategy##_dictMatchState)
#define LAZY_COMPRESSOR(strategy)                                                                  \
	COMPRESSOR(strategy)                                                                       \
	STAND_IN(ZSTD_compressBlock_##strategy##_row)                                              \
	STAND_IN(ZSTD_compressBlock_##strategy##_extDict_row)                                      \
	STAND_IN(ZSTD_compressBlock_##strategy##_dictMatchState_row)                               \
	STAND_IN(ZSTD_compressBlock_##strategy##_dedicatedDictSearch)                              \
	STAND_IN(ZSTD_compressBlock_##strategy##_dedicatedDictSearch_row)

LAZY_COMPRESSOR(greedy)
LAZY_COMPRESSOR(lazy)
LAZY_COMPRESSOR(lazy2)
COMPRESSOR(btlazy2)
COMPRESSOR(btopt)
COMPRESSOR(btultra)
STAND_IN(ZSTD_compressBlock_btultra2)
STAND_IN(ZSTD_dedicatedDictSearch_lazy_loadDictionary)
STAND_IN(ZSTD_insertAndFindFirstIndex)
STAND_IN(ZSTD_row_update)
STAND_IN(ZSTD_updateTree)
