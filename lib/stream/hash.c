/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stream/chunk.h"

#if HAVE_AVX2
void hash_update_avx2(XXH3_state_t *state, const void *data, size_t len);
#endif

void hash_update(XXH3_state_t *state, const void *data, size_t len)
{
#if HAVE_AVX2
	if (__builtin_cpu_supports("avx2")) {
		hash_update_avx2(state, data, len);
		return;
	}
#endif
	XXH3_64bits_update(state, data, len);
}

uint64_t chunk_hash(const struct chunk_header *header, const struct iovec *payload, int count)
{
	struct chunk_header h = *header;
	XXH3_state_t state;

	h.hash = 0;
	XXH3_64bits_reset(&state);
	hash_update(&state, &h, sizeof(h));
	for (int i = 0; i < count; i++)
		hash_update(&state, payload[i].iov_base, payload[i].iov_len);
	return XXH3_64bits_digest(&state);
}
