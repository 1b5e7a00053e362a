/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Unaligned integers in the recorded machine's byte order. */
#pragma once

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t load_u16(const uint8_t *p, bool big_endian)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return big_endian ? be16toh(v) : le16toh(v);
}

static inline uint32_t load_u32(const uint8_t *p, bool big_endian)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return big_endian ? be32toh(v) : le32toh(v);
}

static inline uint64_t load_u64(const uint8_t *p, bool big_endian)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return big_endian ? be64toh(v) : le64toh(v);
}
