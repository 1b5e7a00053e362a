/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Irreversibly drops everything that decoding a stream does not need: identity, capabilities, all
 * paths, new descriptors, most system calls. Open descriptors stay usable, but none can be opened:
 * their limit is 0, unless `files` says otherwise. Hence poll() fails (EINVAL); select() works.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Sanitizers need terabytes of address space, and the leak check new descriptors. */
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
	bool drop; /* become uid, with group 65534 only; root must set this */
	uid_t uid;
	uint64_t memory;   /* bytes of address space; 0: unchanged */
	uint64_t file_max; /* maximum size of a written file in bytes; 0: unchanged */
	uint64_t cpu_s;	   /* CPU seconds of all threads; 0: unchanged */
	unsigned files;	   /* descriptors may still be received, below this number; 0: none */
	bool reads;	   /* files may be opened for reading, within `files` */
	pid_t parent;	   /* die with this process; 0: with none */
};

int sandbox_enter(const struct sandbox *s, struct error *err);

/* The user for exporters: traced, or if that does not exist one that no account has. */
uid_t sandbox_find_user(void);
