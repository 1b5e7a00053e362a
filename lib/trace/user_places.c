/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/user_places.h"

#include "base/search.h"

/* Like find_vma(): the mapping with the address, or else the next one. */
static const Traced__Capture__Mapping *find_in(const Traced__Capture__ProcessMappings *process,
					       uint64_t address)
{
	size_t at = lower_bound(i, process->n_mappings, process->mappings[i]->end <= address);

	return at < process->n_mappings ? process->mappings[at] : NULL;
}

/* "[vdso]" and "[heap]" are no files. */
static bool has_file(const Traced__Capture__Mapping *m, struct user_place *ret)
{
	if (!m || !m->path.len || m->path.data[0] == '[')
		return false;
	*ret = (struct user_place){ .path = (const char *)m->path.data,
				    .path_len = m->path.len,
				    .start = m->start };
	return true;
}

bool user_place_find(const void *userdata, int32_t tgid, uint64_t address, struct user_place *ret)
{
	const struct trace_info *info = userdata;
	const Traced__Capture__Mapping *next = NULL;
	bool asked = false;

	for (size_t i = info->mapping_count; i-- > 0;) {
		const Traced__Capture__Mappings *all = info->mappings[i];

		for (size_t k = 0; k < all->n_processes; k++) {
			const Traced__Capture__Mapping *m;

			if (all->processes[k]->pid != tgid)
				continue;
			m = find_in(all->processes[k], address);
			if (m && m->start <= address)
				return has_file(m, ret);
			if (!asked && all->all)
				next = m;
			asked = true;
		}
	}
	return has_file(next, ret);
}
