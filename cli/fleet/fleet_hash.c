/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet_hash.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#if HAVE_SODIUM
int fleet_hash_begin(struct fleet_hash *h, struct error *err _unused_)
{
	crypto_generichash_init(&h->state, NULL, 0, RESULT_HASH_SIZE);
	return 0;
}

void fleet_hash_add(struct fleet_hash *h, const void *data, size_t len)
{
	crypto_generichash_update(&h->state, data, len);
}

void fleet_hash_end(struct fleet_hash *h, unsigned char ret[RESULT_HASH_SIZE])
{
	crypto_generichash_final(&h->state, ret, RESULT_HASH_SIZE);
}

int fleet_sign(const char *key, const void *data, size_t len, unsigned char ret[PRESIGN_HASH_SIZE],
	       struct error *err _unused_)
{
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, (const unsigned char *)key, strlen(key));
	crypto_auth_hmacsha256_update(&state, data, len);
	crypto_auth_hmacsha256_final(&state, ret);
	return 0;
}
#else
int fleet_sign(const char *key _unused_, const void *data _unused_, size_t len _unused_,
	       unsigned char ret[PRESIGN_HASH_SIZE] _unused_, struct error *err)
{
	return error_set(err, -EOPNOTSUPP,
			 "this tracectl was built without libsodium, so it can't sign uploads");
}

int fleet_hash_begin(struct fleet_hash *h _unused_, struct error *err)
{
	return error_set(err, -EOPNOTSUPP,
			 "this tracectl was built without libsodium, so it can't check results");
}

void fleet_hash_add(struct fleet_hash *h _unused_, const void *data _unused_, size_t len _unused_)
{
}

void fleet_hash_end(struct fleet_hash *h _unused_, unsigned char ret[RESULT_HASH_SIZE] _unused_)
{
}
#endif
