/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The mappings of one process, sorted by address, without overlaps.
 *
 * They lie in blocks, so that a new one moves few others. A child shares its parent's list and
 * blocks until either changes them: a list is copied before its first change, and so is a block. A
 * long list is not copied: it becomes the base of a short one with the changes. After some hundred
 * changes both become a whole list. All memory counts as that of the process that made it.
 */
#pragma once

#include <stdint.h>

#include "trace/shares.h"

/*
 * Kernels allow a process 65530 at a time by default. perf does not report what is unmapped. A list
 * with a base may have some hundred more.
 */
#define PROCESS_MAPPINGS_MAX 65536

struct code_mapping {
	uint64_t start, end, offset;
	uint32_t file; /* index of the file, see address_spaces_file */
};

struct mapping_list;

/* Returns the same list, for another owner. */
struct mapping_list *mapping_list_share(struct mapping_list *l, struct shares *shares);
void mapping_list_free(struct mapping_list *l, struct shares *shares);
/* Includes mappings of the base that the list hides. NULL: 0. */
uint32_t mapping_list_count(const struct mapping_list *l);

/*
 * Replaces what the mapping overlaps. *l: NULL if there are none so far. 0; -ENOSPC: the process
 * has too many; -ENOMEM.
 */
int mapping_list_add(struct mapping_list **l, int32_t pid, const struct code_mapping *m,
		     struct shares *shares);
/* The mapping of the address; NULL: none. Valid until the next change. */
const struct code_mapping *mapping_list_find(const struct mapping_list *l, uint64_t address);
