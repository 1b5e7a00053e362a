/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hashes for tables whose keys a stranger may choose. They depend on a secret that each process
 * draws at its start, so nobody can choose keys that share a slot. For the same reason no output
 * may depend on the order of such a table's slots.
 *
 * For texts, pass hash_secret[0] as the seed of XXH3_64bits_withSeed(). Numbers are multiplied by
 * hash_secret[1], which is odd, twice: with one product in seventeen secrets, neighbouring keys
 * (task ids) stood in long rows, because a small multiple of the secret was nearly 0.
 */
#pragma once

#include <stdint.h>

extern uint64_t hash_secret[2];

/* Replaces the secret. For tests. */
void hash_secret_set(uint64_t first, uint64_t second);

/* The high bits of a product are the best, and tables use the low ones. */
static inline uint64_t hash_number(uint64_t key)
{
	uint64_t product = key * hash_secret[1];

	return __builtin_bswap64((product ^ product >> 32) * hash_secret[1]);
}

/* The same for keys of 32 bits, faster. */
static inline uint32_t hash_u32(uint32_t key)
{
	uint64_t product = key * hash_secret[1];

	return (uint32_t)((product ^ product >> 32) * hash_secret[1] >> 32);
}

static inline uint64_t hash_pair(int32_t a, int32_t b)
{
	return hash_number((uint64_t)(uint32_t)a << 32 | (uint32_t)b);
}
