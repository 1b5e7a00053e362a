/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet/blake2b.h"

#include <endian.h>
#include <string.h>

#include "base/cleanup.h"

#define ROUNDS 12

static const uint64_t initial[8] = {
	UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b), UINT64_C(0x3c6ef372fe94f82b),
	UINT64_C(0xa54ff53a5f1d36f1), UINT64_C(0x510e527fade682d1), UINT64_C(0x9b05688c2b3e6c1f),
	UINT64_C(0x1f83d9abfb41bd6b), UINT64_C(0x5be0cd19137e2179),
};

/* Rounds 10 and 11 are as 0 and 1. */
static const unsigned char sigma[10][16] = {
	{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	{ 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
	{ 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 },
	{ 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
	{ 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 },
	{ 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
	{ 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 },
	{ 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
	{ 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 },
	{ 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
};

static inline uint64_t rotate(uint64_t x, unsigned by)
{
	return x >> by | x << (64 - by);
}

static inline void mix(uint64_t v[16], unsigned a, unsigned b, unsigned c, unsigned d, uint64_t x,
		       uint64_t y)
{
	v[a] += v[b] + x;
	v[d] = rotate(v[d] ^ v[a], 32);
	v[c] += v[d];
	v[b] = rotate(v[b] ^ v[c], 24);
	v[a] += v[b] + y;
	v[d] = rotate(v[d] ^ v[a], 16);
	v[c] += v[d];
	v[b] = rotate(v[b] ^ v[c], 63);
}

static void blake2b_compress(struct blake2b *b, bool is_last)
{
	uint64_t v[16], m[16];

	memcpy(m, b->block, sizeof(m));
	for (unsigned i = 0; i < 16; i++)
		m[i] = le64toh(m[i]);
	memcpy(v, b->state, sizeof(b->state));
	memcpy(v + 8, initial, sizeof(initial));
	v[12] ^= b->bytes;
	v[14] ^= is_last ? UINT64_MAX : 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		const unsigned char *s = sigma[round % 10];

		for (unsigned i = 0; i < 4; i++)
			mix(v, i, 4 + i, 8 + i, 12 + i, m[s[2 * i]], m[s[2 * i + 1]]);
		for (unsigned i = 0; i < 4; i++)
			mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4,
			    m[s[8 + 2 * i]], m[s[8 + 2 * i + 1]]);
	}
	for (unsigned i = 0; i < 8; i++)
		b->state[i] ^= v[i] ^ v[8 + i];
	b->used = 0;
}

void blake2b_init(struct blake2b *b)
{
	*b = (struct blake2b){ 0 };
	memcpy(b->state, initial, sizeof(initial));
	/* Fan-out and depth 1, no key, and the size of the result. */
	b->state[0] ^= UINT64_C(0x01010000) ^ BLAKE2B_SIZE;
}

/* A full block waits: it may be the last one. */
void blake2b_update(struct blake2b *b, const void *data, size_t len)
{
	const unsigned char *from = data;

	while (len) {
		size_t n;

		if (b->used == BLAKE2B_BLOCK)
			blake2b_compress(b, false);
		n = MIN(len, BLAKE2B_BLOCK - b->used);
		memcpy(b->block + b->used, from, n);
		b->used += n;
		b->bytes += n;
		from += n;
		len -= n;
	}
}

void blake2b_final(struct blake2b *b, unsigned char ret[BLAKE2B_SIZE])
{
	memset(b->block + b->used, 0, BLAKE2B_BLOCK - b->used);
	blake2b_compress(b, true);
	for (unsigned i = 0; i < BLAKE2B_SIZE; i++)
		ret[i] = (unsigned char)(b->state[i / 8] >> 8 * (i % 8));
}
