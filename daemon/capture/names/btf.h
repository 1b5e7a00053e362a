/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's type information (/sys/kernel/btf/vmlinux), as far as event formats need it. */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/*
 * Appends a line "NAME value" for each of names (sorted, as strcmp orders)
 * that is an enumerator, of several of one name the first; and "struct:NAME size" for
 * each that is a structure. -EBADMSG: no BTF,
 * or damaged: what was found before stays.
 */
int btf_resolve_enums(const void *btf, size_t size, const char *const *names, size_t count,
		      struct buf *out);

/*
 * Appends what a text of functions' arguments needs: the lines of an ARGUMENTS chunk
 * (docs/capture-format.md). -EBADMSG, -ENOMEM.
 */
int btf_describe_arguments(const void *btf, size_t size, struct buf *out);

/* What BTF doesn't tell. Appends lines for those of names that can be found out. */

/* HZ: by the resolution of the coarse clocks, which advance once a tick. */
int constants_resolve_hz(const char *const *names, size_t count, struct buf *out);
/*
 * vmemmap_base of x86-64, from which struct page pointers count: known where
 * the kernel was booted without address randomization. sys, proc: "/sys", "/proc".
 */
int constants_resolve_vmemmap(const char *sys, const char *proc, const char *const *names,
			      size_t count, struct buf *out);
