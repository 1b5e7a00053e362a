/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signs as signify(1) does. */
#pragma once

#include "base/buf.h"

struct signer {
	unsigned char public[32], secret[64], number[8];
};

void signer_init(struct signer *signer, unsigned char seed);
/* Appends the file of the public key. */
void signer_put_key(const struct signer *signer, struct buf *out);
/* Appends a file with an embedded signature. */
void signer_put_signed(const struct signer *signer, const char *message, struct buf *out);
