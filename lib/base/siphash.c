/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/siphash.h"

#include <endian.h>
#include <string.h>

struct sip_state {
	uint64_t v0, v1, v2, v3;
};

static uint64_t sip_rotl(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

static void sip_round(struct sip_state *s)
{
	s->v0 += s->v1;
	s->v1 = sip_rotl(s->v1, 13) ^ s->v0;
	s->v0 = sip_rotl(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = sip_rotl(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = sip_rotl(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = sip_rotl(s->v1, 17) ^ s->v2;
	s->v2 = sip_rotl(s->v2, 32);
}

static void sip_compress(struct sip_state *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	sip_round(s);
	s->v0 ^= word;
}

uint64_t siphash_u64(const uint8_t key[static 16], uint64_t value)
{
	uint64_t k0, k1;

	memcpy(&k0, key, sizeof(k0));
	memcpy(&k1, key + 8, sizeof(k1));
	k0 = le64toh(k0);
	k1 = le64toh(k1);

	struct sip_state s = {
		.v0 = k0 ^ UINT64_C(0x736f6d6570736575),
		.v1 = k1 ^ UINT64_C(0x646f72616e646f6d),
		.v2 = k0 ^ UINT64_C(0x6c7967656e657261),
		.v3 = k1 ^ UINT64_C(0x7465646279746573),
	};

	sip_compress(&s, value);
	/* The last block only holds the message's length, eight bytes: no bytes remain. */
	sip_compress(&s, UINT64_C(8) << 56);
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
