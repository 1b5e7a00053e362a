/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "signify.h"

#include <sodium.h>

void signer_init(struct signer *s, unsigned char seed)
{
	unsigned char seeds[crypto_sign_SEEDBYTES];

	memset(seeds, seed, sizeof(seeds));
	memset(s->number, seed, sizeof(s->number));
	crypto_sign_seed_keypair(s->public, s->secret, seeds);
}

static void signer_put_lines(const struct signer *s, const void *data, size_t len, struct buf *out)
{
	unsigned char bytes[2 + 8 + 64] = "Ed";
	char text[128];

	memcpy(bytes + 2, s->number, sizeof(s->number));
	memcpy(bytes + 10, data, len);
	sodium_bin2base64(text, sizeof(text), bytes, 10 + len, sodium_base64_VARIANT_ORIGINAL);
	buf_printf(out, "untrusted comment: a test\n%s\n", text);
}

void signer_put_key(const struct signer *s, struct buf *out)
{
	signer_put_lines(s, s->public, sizeof(s->public), out);
}

void signer_put_signed(const struct signer *s, const char *message, struct buf *out)
{
	unsigned char signature[crypto_sign_BYTES];

	crypto_sign_detached(signature, NULL, (const unsigned char *)message, strlen(message),
			     s->secret);
	signer_put_lines(s, signature, sizeof(signature), out);
	buf_puts(out, message);
}
