/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records of perf_event_open(2)'s rings; the first byte: the byte order, and whether there are
 * stacks.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "samples/address_space.h"
#include "samples/perf_record.h"

static void map(struct address_spaces *a, const struct perf_record *r)
{
	const struct new_mapping m = {
		.start = r->map.start,
		.length = r->map.length,
		.offset = r->map.offset,
		.path = r->map.path,
		.path_len = strlen(r->map.path),
		.build_id = r->map.build_id,
		.build_id_len = r->map.build_id_len,
	};
	const struct code_mapping *found;

	if (address_spaces_map(a, r->pid, &m) < 0 || !m.length || m.start + m.length < m.start)
		return;
	found = address_spaces_find(a, r->pid, m.start);
	if (!found || found->file >= a->file_count || found->end <= found->start)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct address_spaces spaces = { 0 };
	struct perf_format f = { .sample_type = 0x187 };
	struct perf_record r;
	uint64_t sum = 0;
	size_t n;

	if (!size)
		return 0;
	f.big_endian = data[0] & 1;
	f.sample_type |= data[0] & 2 ? 0x20 : 0;
	for (size_t at = 1; at < size && (n = perf_record_read(&r, &f, data + at, size - at));
	     at += n) {
		if (n > size - at)
			abort();
		if (r.kind == PERF_MAPPED)
			map(&spaces, &r);
		else if (r.kind == PERF_FORKED)
			address_spaces_fork(&spaces, r.parent, r.pid);
		else if (r.kind == PERF_EXECED)
			address_spaces_clear(&spaces, r.pid);
		else if (r.kind == PERF_SAMPLED)
			for (uint32_t i = 0; i < r.sample.count; i++)
				sum += perf_record_chain(&r, &f, i);
		address_spaces_find(&spaces, r.pid, sum);
	}
	address_spaces_deinit(&spaces);
	return 0;
}
