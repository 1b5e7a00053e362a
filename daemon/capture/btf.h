/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's type information (/sys/kernel/btf/vmlinux), as far as event formats need it. */
#pragma once

#include <stddef.h>

#include "util/buf.h"

/*
 * Appends a line "NAME value" for each of names (sorted, as strcmp orders)
 * that is an enumerator; of several of one name the first. -EBADMSG: no BTF,
 * or damaged: what was found before stays.
 */
int btf_resolve_enums(const void *btf, size_t size, const char *const *names, size_t count,
		      struct buf *out);
/* Appends "HZ value" if HZ is among names: told by the resolution of the coarse clock. */
int constants_resolve_hz(const char *const *names, size_t count, struct buf *out);
