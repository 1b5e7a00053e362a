/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compiled for AVX2, and called only on such processors. Distributions build libxxhash for their
 * oldest processors; xxHash's header has code for newer ones.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

void hash_update_avx2(XXH3_state_t *state, const void *data, size_t len);

void hash_update_avx2(XXH3_state_t *state, const void *data, size_t len)
{
	XXH3_64bits_update(state, data, len);
}
