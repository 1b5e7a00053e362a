/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/user_places.h"

static bool find_in(const Traced__Capture__ProcessMappings *process, uint64_t address,
		    struct user_place *ret)
{
	for (size_t i = 0; i < process->n_mappings; i++) {
		const Traced__Capture__Mapping *m = process->mappings[i];

		if (address < m->start || address >= m->end || !m->path.len)
			continue;
		*ret = (struct user_place){ .path = (const char *)m->path.data,
					    .path_len = m->path.len,
					    .start = m->start };
		return true;
	}
	return false;
}

bool user_place_find(const void *userdata, int32_t tgid, uint64_t address, struct user_place *ret)
{
	const struct trace_info *info = userdata;

	for (size_t i = info->mapping_count; i-- > 0;) {
		const Traced__Capture__Mappings *m = info->mappings[i];

		for (size_t k = 0; k < m->n_processes; k++)
			if (m->processes[k]->pid == tgid && find_in(m->processes[k], address, ret))
				return true;
	}
	return false;
}
