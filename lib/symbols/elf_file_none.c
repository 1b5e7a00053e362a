/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbols/elf_file.h"

#include "base/cleanup.h"

int elf_file_open(struct elf_file **ret _unused_, int fd, const char *path _unused_,
		  const char *debug _unused_, const struct code_opener *opener _unused_,
		  const void *build_id _unused_, size_t build_id_len _unused_)
{
	close_fd(fd);
	return -EOPNOTSUPP;
}

struct elf_file *elf_file_free(struct elf_file *f _unused_)
{
	return NULL;
}

const char *elf_file_find(struct elf_file *f _unused_, uint64_t offset _unused_)
{
	return NULL;
}

size_t elf_file_locate(struct elf_file *f _unused_, const char *name _unused_,
		       uint64_t *offsets _unused_, size_t max _unused_, bool *ret_chosen)
{
	*ret_chosen = false;
	return 0;
}

size_t elf_file_names(struct elf_file *f _unused_, struct buf *text _unused_, const char ***ret)
{
	*ret = NULL;
	return 0;
}
