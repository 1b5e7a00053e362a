/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The functions of one ELF file: of its own tables, of .gnu_debugdata, or of the separate
 * file that has its debug information. By elfutils; built without, there are none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct elf_file;

/*
 * Takes fd. debug: a folder to be searched for debug information first, or NULL.
 * -ENOEXEC: no ELF file; -ESTALE: its build id is another one than the one that is
 * expected (build_id_len 0: any will do); -EOPNOTSUPP: built without elfutils.
 */
int elf_file_open(struct elf_file **ret, int fd, const char *path, const char *debug,
		  const void *build_id, size_t build_id_len);
struct elf_file *elf_file_free(struct elf_file *f);

/* The function at that offset in the file; valid as long as f. NULL: none is known. */
const char *elf_file_find(struct elf_file *f, uint64_t offset);

/*
 * Where in the file the functions of that name begin: offsets gets at most max of them; returns how
 * many there are. *ret_chosen: one is chosen as a program starts (STT_GNU_IFUNC), and is not among
 * them.
 */
size_t elf_file_locate(struct elf_file *f, const char *name, uint64_t *offsets, size_t max,
		       bool *ret_chosen);
/* All names: *ret, to be freed, is of strings that are put into text. Returns how many. */
size_t elf_file_names(struct elf_file *f, struct buf *text, const char ***ret);
