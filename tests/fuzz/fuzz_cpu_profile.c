/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A profile of gperftools' CPU profiler, with any content. */
#include "fuzz.h"

#include <stdlib.h>

#include "samples/cpu_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cpu_profile p;
	uint64_t last = 0;

	if (cpu_profile_parse(&p, data, size, NULL) == 0) {
		for (size_t i = 0; i < p.stack_count; i++)
			for (uint32_t j = 0; j < p.stacks[i].depth; j++)
				last ^= cpu_profile_pc(&p, &p.stacks[i], j);
		for (size_t i = 0; i < p.mapping_count; i++)
			if (p.mappings[i].end <= p.mappings[i].start)
				abort();
		cpu_profile_find(&p, last);
	}
	cpu_profile_deinit(&p);
	return 0;
}
