/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace/host_numbers.h"

#include <errno.h>

#include "base/vec.h"

int host_numbers_place(struct host_numbers *all, size_t count)
{
	uint32_t step = 1, most = 0, next = 0;

	for (size_t i = 0; i < count; i++) {
		if (all[i].cpus > HOST_CPUS_MAX)
			return -EOVERFLOW;
		most = MAX(most, all[i].cpus);
	}
	while (step < most)
		step *= 10;
	if (step * count > HOST_CPUS_MAX)
		step = 1;
	for (size_t i = 0; i < count; i++) {
		all[i].first_cpu = next;
		next += (all[i].cpus + step - 1) / step * step;
	}
	return next > HOST_CPUS_MAX ? -EOVERFLOW : 0;
}
