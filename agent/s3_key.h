/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The access key of a store with S3's signatures, from a file in the format of AWS' own tools. */
#pragma once

#include <sys/types.h>

#include "base/error.h"

struct s3_key {
	char *id, *secret; /* NULL: there is no key */
};

/*
 * Reads the file. -EPERM: others than owner can change it, or everybody can read it. A message
 * never has a part of the key.
 */
int s3_key_load(struct s3_key *ret, const char *path, uid_t owner, struct error *err);
void s3_key_deinit(struct s3_key *key);
