/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ed25519 signatures in the files of OpenBSD's signify(1): a line "untrusted comment: ...", a line
 * of base64, and after an embedded signature (signify -S -e) the message. In base64 are "Ed", the
 * eight bytes of the key's number, and the key (32 bytes) or the signature (64 bytes).
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

#define SIGNATURE_KEYS_MAX 16

struct public_key {
	unsigned char number[8], key[32];
	char *name; /* of its file, for messages; owned */
};

struct public_keys {
	struct public_key keys[SIGNATURE_KEYS_MAX];
	size_t count;
};

/* Reads all *.pub of a folder. -EPERM: the folder or a file can be changed by others than owner. */
int public_keys_load(struct public_keys *ret, const char *folder, uid_t owner, struct error *err);
void public_keys_deinit(struct public_keys *keys);

/*
 * Checks a file with an embedded signature. Only after that may anybody look at its message, which
 * goes to the end of data; *ret_message is its beginning. -EBADMSG: no signature, or not a good
 * one. *ret_signer: the name of the key, borrowed.
 */
int signature_check(const struct public_keys *keys, const char *data, size_t len,
		    const char **ret_message, const char **ret_signer, struct error *err);
