/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* SipHash-2-4 (Aumasson, Bernstein) of one 64-bit word: a keyed hash that cannot be inverted. */
#pragma once

#include <stdint.h>

uint64_t siphash_u64(const uint8_t key[static 16], uint64_t value);
