/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compiled for processors with AVX2, and called on these alone. Distributions build libxxhash for
 * the least that their processors have; its header has the code for more.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

void hash_update_avx2(XXH3_state_t *state, const void *data, size_t len);

void hash_update_avx2(XXH3_state_t *state, const void *data, size_t len)
{
	XXH3_64bits_update(state, data, len);
}
