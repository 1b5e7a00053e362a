/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes from the calling process, for good, all that decoding a stream does
 * not need: identity, capabilities, every path, every new descriptor, most
 * system calls. What is open stays usable, and what is closed can't be
 * replaced: the limit of descriptors is 0. Hence no poll() in it (EINVAL);
 * select() works.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Sanitizers take terabytes of addresses, and the leak check new descriptors. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANDBOX_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANDBOX_SANITIZED 1
#endif
#endif
#ifndef SANDBOX_SANITIZED
#define SANDBOX_SANITIZED 0
#endif

struct sandbox {
	bool drop; /* become uid, in the group 65534 alone; only root can, and must */
	uid_t uid;
	uint64_t memory;   /* bytes of address space; 0: as before */
	uint64_t file_max; /* bytes that a written file may have; 0: as before */
	uint64_t cpu_s;	   /* seconds of CPU time, of all its threads; 0: as before */
	pid_t parent;	   /* dies with it; 0: with nobody */
};

int sandbox_enter(const struct sandbox *s, struct error *err);

/* The user that exporters become: traced, or if there is none, nobody. */
uid_t sandbox_find_user(void);
