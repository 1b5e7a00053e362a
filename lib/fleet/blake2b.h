/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * BLAKE2b-256 without a key, RFC 7693: the names of results. The agent, which also verifies
 * signatures, has it from libsodium; tracectl does without that library.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLAKE2B_BLOCK 128
#define BLAKE2B_SIZE 32

struct blake2b {
	uint64_t state[8];
	uint64_t bytes;
	unsigned char block[BLAKE2B_BLOCK];
	size_t used; /* of block */
};

void blake2b_init(struct blake2b *b);
void blake2b_update(struct blake2b *b, const void *data, size_t len);
void blake2b_final(struct blake2b *b, unsigned char ret[BLAKE2B_SIZE]);
