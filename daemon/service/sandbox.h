/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes from the calling process, for good, all that decoding a stream does
 * not need: identity, capabilities, every path, every new descriptor.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/* AddressSanitizer takes terabytes of addresses, and its leak check new descriptors. */
#if defined(__SANITIZE_ADDRESS__)
#define SANDBOX_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANDBOX_SANITIZED 1
#endif
#endif
#ifndef SANDBOX_SANITIZED
#define SANDBOX_SANITIZED 0
#endif

struct sandbox {
	bool drop; /* become uid and gid; only root can, and must */
	uid_t uid;
	gid_t gid;
	unsigned fds;	   /* descriptors 0 to fds - 1 are open; there will be no further one */
	uint64_t memory;   /* bytes of address space; 0: as before */
	uint64_t file_max; /* bytes that a written file may have; 0: as before */
	pid_t parent;	   /* dies with it; 0: with nobody */
};

int sandbox_enter(const struct sandbox *s, struct error *err);

/* The user that exporters become: traced, or if there is none, nobody. */
void sandbox_find_user(uid_t *ret_uid, gid_t *ret_gid);
