/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the kernel's type information (/sys/kernel/btf/vmlinux), as far as event formats need it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/*
 * Appends a line "NAME value" for each of names that is an enumerator (the first one if several
 * share the name), and "struct:NAME size" for each that is a structure. names must be sorted by
 * strcmp. -EBADMSG: no BTF, or damaged; lines found before the damage stay.
 */
int btf_resolve_enums(const void *btf, size_t size, const char *const *names, size_t count,
		      struct buf *out);

/*
 * Appends the lines of an ARGUMENTS chunk (docs/capture-format.md), which print functions'
 * arguments. -EBADMSG, -ENOMEM.
 */
int btf_describe_arguments(const void *btf, size_t size, struct buf *out);

/*
 * The functions that BTF describes, sorted by name. base: of the kernel, for a module, whose types
 * continue the kernel's; or NULL. btf and base are borrowed. -EBADMSG, -ENOMEM.
 */
struct btf_functions;
int btf_functions_new(struct btf_functions **ret, const void *btf, size_t size,
		      const struct btf_functions *base);
struct btf_functions *btf_functions_free(struct btf_functions *f);
DEFINE_CLEANUP_FUNC(struct btf_functions *, btf_functions_free);
size_t btf_functions_count(const struct btf_functions *f);
const char *btf_functions_name(const struct btf_functions *f, size_t i);
/*
 * Appends the function's prototype in C, "int NAME(struct file *file, ...)", under the name
 * `shown`. bare: without its type and its first argument. False: BTF does not describe it.
 */
bool btf_functions_put(const struct btf_functions *f, const char *name, const char *shown,
		       bool bare, struct buf *out);

/* Constants that are not in BTF. Each function appends lines for the names that it can resolve. */

/* HZ, from the resolution of the coarse clocks, which advance once per tick. */
int constants_resolve_hz(const char *const *names, size_t count, struct buf *out);
/*
 * vmemmap_base of x86-64, the base of struct page pointers. Known only if the kernel was booted
 * without address randomization. sys, proc: "/sys", "/proc".
 */
int constants_resolve_vmemmap(const char *sys, const char *proc, const char *const *names,
			      size_t count, struct buf *out);
