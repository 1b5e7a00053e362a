/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parses a profile of gperftools' CPU profiler: a header, stacks with their counts, a trailer, and
 * the text of the program's mappings. Words have the size and byte order of the program's pointers.
 * The profile has no times and no threads.
 *
 * The input is hostile: every count is checked against the bytes left.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Bytes of a whole profile; callers bound their reading by it. */
#define CPU_PROFILE_MAX (256U << 20)
#define CPU_PROFILE_MAPPINGS_MAX 65536
/* Frames of one stack; deeper stacks lose their outermost frames. */
#define CPU_PROFILE_DEPTH_MAX UINT64_C(4096)

struct cpu_profile_stack {
	uint64_t count;	    /* sum over all records of this stack; saturates */
	const uint8_t *pcs; /* borrowed from the file; innermost first */
	uint32_t depth;
};

struct cpu_profile_mapping {
	uint64_t start, end, offset;
	char *path; /* owned; "$build" already replaced */
};

struct cpu_profile {
	unsigned slot; /* bytes of a word: 4 or 8 */
	bool big_endian;
	uint64_t period_us;
	uint64_t samples;		  /* sum of all counts; saturates */
	struct cpu_profile_stack *stacks; /* owned; without duplicates, in file order */
	size_t stack_count;
	struct cpu_profile_mapping *mappings; /* owned; executable mappings, sorted by start */
	size_t mapping_count;
};

/* True if the first bytes of a file may begin such a profile. */
bool cpu_profile_begins(const void *data, size_t len);
/*
 * Borrows data for the lifetime of ret. -EBADMSG: not a profile, or damaged, with the position;
 * -EFBIG: too many mappings. Pass ret to cpu_profile_deinit in any case.
 */
int cpu_profile_parse(struct cpu_profile *ret, const void *data, size_t len, struct error *err);
void cpu_profile_deinit(struct cpu_profile *p);

/* Program counter i of a stack; i < depth. */
uint64_t cpu_profile_pc(const struct cpu_profile *p, const struct cpu_profile_stack *s, uint32_t i);
/* NULL: the address is in no mapping. */
const struct cpu_profile_mapping *cpu_profile_find(const struct cpu_profile *p, uint64_t address);
