/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The hash that a result is named by: BLAKE2b-256, by libsodium. */
#pragma once

#include <stddef.h>

#if HAVE_SODIUM
#include <sodium.h>
#endif

#include "base/error.h"
#include "fleet/result_name.h"

struct fleet_hash {
#if HAVE_SODIUM
	crypto_generichash_state state;
#endif
};

#define PRESIGN_HASH_SIZE 32
/* HMAC-SHA256. -EOPNOTSUPP: as fleet_hash_begin(). */
int fleet_sign(const char *key, const void *data, size_t len, unsigned char ret[PRESIGN_HASH_SIZE],
	       struct error *err);
/* -EOPNOTSUPP: this program was built without libsodium. */
int fleet_hash_begin(struct fleet_hash *h, struct error *err);
void fleet_hash_add(struct fleet_hash *h, const void *data, size_t len);
void fleet_hash_end(struct fleet_hash *h, unsigned char ret[RESULT_HASH_SIZE]);
