/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/secret_hash.h"

#include <sys/auxv.h>
#include <sys/random.h>

#include "base/siphash.h"

uint64_t hash_secret[2];

void hash_secret_set(uint64_t first, uint64_t second)
{
	hash_secret[0] = first;
	hash_secret[1] = second | 1;
}

/* Runs before main(), so before any sandbox and any thread. */
__attribute__((constructor)) static void hash_secret_draw(void)
{
	/* The kernel's 16 random bytes for this process. */
	const uint8_t *key = (const uint8_t *)getauxval(AT_RANDOM);
	uint64_t drawn[2];

	if (getrandom(drawn, sizeof(drawn), GRND_NONBLOCK) == sizeof(drawn))
		hash_secret_set(drawn[0], drawn[1]);
	else if (key)
		hash_secret_set(siphash_u64(key, 0), siphash_u64(key, 1));
	else
		hash_secret_set(UINT64_C(0x243f6a8885a308d3), UINT64_C(0x9e3779b97f4a7c15));
}
