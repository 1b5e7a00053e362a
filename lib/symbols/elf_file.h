/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The functions of one ELF file, from its own tables, .gnu_debugdata, or a separate file with debug
 * information. Uses elfutils; without it there are no functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct elf_file;

struct code_opener;

/*
 * Owns fd from then on, also on failure. debug: a folder to search first for debug information, or
 * NULL. opener: opens files with debug information; NULL: elfutils does. -ENOEXEC: not an ELF file.
 * -ESTALE: the build id differs from the expected one (build_id_len 0: any id is accepted).
 * -EOPNOTSUPP: built without elfutils.
 */
int elf_file_open(struct elf_file **ret, int fd, const char *path, const char *debug,
		  const struct code_opener *opener, const void *build_id, size_t build_id_len);
struct elf_file *elf_file_free(struct elf_file *f);

/* The function at a file offset. Valid as long as f. NULL: unknown. */
const char *elf_file_find(struct elf_file *f, uint64_t offset);

/*
 * Finds functions by name. Writes at most max file offsets; returns the number of functions. Sets
 * *ret_chosen if programs choose among several at start (STT_GNU_IFUNC); these are not counted.
 */
size_t elf_file_locate(struct elf_file *f, const char *name, uint64_t *offsets, size_t max,
		       bool *ret_chosen);
/* All names. The strings are appended to text; the caller frees *ret. Returns the count. */
size_t elf_file_names(struct elf_file *f, struct buf *text, const char ***ret);
