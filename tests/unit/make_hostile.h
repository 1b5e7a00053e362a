/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recordings that a hostile program would like: each fills one table of the exporter, in the order
 * and with the keys that cost most.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hostile_shape {
	const char *name;
	void (*make)(int fd, uint64_t count);  /* a stream; owns fd */
	void (*merge)(int fd, uint64_t count); /* NULL, or a file to merge with it; owns fd */
	bool has_samples;
};

/* All of them; the last one has no name. */
extern const struct hostile_shape hostile_shapes[];
/* More CPUs than a Perfetto trace takes. */
extern const struct hostile_shape hostile_cpus;
