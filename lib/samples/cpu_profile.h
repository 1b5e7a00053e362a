/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A profile that gperftools' CPU profiler wrote: a header, records of stacks and how often
 * each was met, a trailer, and the text of the program's mappings. Numbers are as
 * wide as the program's pointers, in its byte order. It tells no times and no threads.
 *
 * It is a file of anybody's: every count is held against what is left of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Bytes of a whole profile; callers bound what they read by it. */
#define CPU_PROFILE_MAX (256U << 20)
#define CPU_PROFILE_MAPPINGS_MAX 65536
/* Of one stack; deeper ones lose their outermost frames. */
#define CPU_PROFILE_DEPTH_MAX UINT64_C(4096)

struct cpu_profile_stack {
	uint64_t count;	    /* of all records that have this stack; saturates */
	const uint8_t *pcs; /* borrowed from the file: the innermost first */
	uint32_t depth;
};

struct cpu_profile_mapping {
	uint64_t start, end, offset;
	char *path; /* owned; $build is replaced */
};

struct cpu_profile {
	unsigned slot; /* bytes of a number: 4 or 8 */
	bool big_endian;
	uint64_t period_us;
	uint64_t samples;		  /* of all stacks; saturates */
	struct cpu_profile_stack *stacks; /* owned; each once, in the order of the file */
	size_t stack_count;
	struct cpu_profile_mapping *mappings; /* owned; executable ones, by start */
	size_t mapping_count;
};

/* Whether these, the first bytes of a file, may be such a profile's. */
bool cpu_profile_begins(const void *data, size_t len);
/*
 * Borrows data as long as ret is used. -EBADMSG: no such profile, or a damaged one, and where;
 * -EFBIG: more mappings than are taken. ret is to be given to cpu_profile_deinit in any case.
 */
int cpu_profile_parse(struct cpu_profile *ret, const void *data, size_t len, struct error *err);
void cpu_profile_deinit(struct cpu_profile *p);

/* The program counter number i of a stack, i below its depth. */
uint64_t cpu_profile_pc(const struct cpu_profile *p, const struct cpu_profile_stack *s, uint32_t i);
/* NULL: the address is in none. */
const struct cpu_profile_mapping *cpu_profile_find(const struct cpu_profile *p, uint64_t address);
