/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Executable mappings of each process over time. A new mapping replaces what it overlaps, a child
 * inherits its parent's, exec removes all. (perf reports no munmap.)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"
#include "samples/mapping_list.h"

struct code_file {
	char *path;	  /* owned; "": none */
	const char *name; /* the path's last part */
	uint8_t build_id[20];
	uint8_t build_id_len;
};

DECLARE_TABLE(file_slots, struct file_slot);
DECLARE_TABLE(space_slots, struct address_space);

struct address_spaces {
	struct code_file *files; /* owned */
	uint32_t file_count, file_cap;
	struct file_slots known_files;
	struct space_slots spaces; /* by pid */
	struct shares memory;	   /* bytes of the mappings */
	struct shares file_shares;
	uint64_t refused;
};
void address_spaces_deinit(struct address_spaces *a);
/* Number of mappings, over all processes. For tests. */
uint64_t address_spaces_count(const struct address_spaces *a);

struct new_mapping {
	uint64_t start, length, offset;
	const char *path;
	size_t path_len;
	const void *build_id;
	size_t build_id_len;
};
/* 0 or -ENOMEM, like the calls below. Mappings above the limits are counted in `refused`. */
int address_spaces_map(struct address_spaces *a, int32_t pid, const struct new_mapping *m);
int address_spaces_fork(struct address_spaces *a, int32_t parent, int32_t child);
/* The process called exec, or exited. */
void address_spaces_clear(struct address_spaces *a, int32_t pid);

/* The mapping of that address in pid; NULL: unknown. Valid until the next change. */
const struct code_mapping *address_spaces_find(const struct address_spaces *a, int32_t pid,
					       uint64_t address);
