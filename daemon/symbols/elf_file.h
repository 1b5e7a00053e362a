/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The functions of one ELF file: of its own tables, of .gnu_debugdata, or of the separate
 * file that has its debug information. By elfutils; built without, there are none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
