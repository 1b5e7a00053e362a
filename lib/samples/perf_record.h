/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decodes the records of perf_event_open(2)'s rings, as in <linux/perf_event.h>, in either byte
 * order. Programs control some of their contents: each length is checked against its enclosing
 * record.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum perf_kind {
	PERF_NOTHING, /* a record that is not used here */
	PERF_SAMPLED,
	PERF_MAPPED,
	PERF_EXECED,
	PERF_FORKED, /* a new process; new threads are PERF_NOTHING */
	PERF_EXITED, /* a process's first thread exited */
	PERF_LOST,
	PERF_THROTTLED,
};

/* Markers in a sample's chain: kernel, program or unknown addresses follow. */
#define PERF_CHAIN_KERNEL ((uint64_t)-128)
#define PERF_CHAIN_USER ((uint64_t)-512)
#define PERF_CHAIN_CONTEXT ((uint64_t)-4095) /* this and above: a marker */

struct perf_record {
	enum perf_kind kind;
	bool kernel;	  /* for a sample without a chain: taken in the kernel */
	uint8_t cpu_mode; /* as in PERF_RECORD_MISC_CPUMODE_MASK */
	uint64_t time;	  /* in the sampler's clock */
	int32_t pid, tid; /* for a fork: the child's */
	uint32_t cpu;
	union {
		struct {
			uint64_t ip, period;
			const uint8_t *chain; /* borrowed; count words of 8 bytes */
			uint32_t count;
		} sample;
		struct {
			uint64_t start, length, offset;
			const uint8_t *build_id; /* borrowed */
			size_t build_id_len;
			const char *path; /* borrowed, terminated */
		} map;
		int32_t parent; /* for a fork */
		uint64_t lost;
	};
};

struct perf_format {
	uint64_t sample_type;
	bool big_endian;
};
/*
 * True if records of that sample_type can be read: it must have time, task and CPU, and no unknown
 * field.
 */
bool perf_format_known(const struct perf_format *f);

/* Size of the record at p; 0: invalid. ret borrows from p. */
size_t perf_record_read(struct perf_record *ret, const struct perf_format *f, const uint8_t *p,
			size_t len);
/* Entry i of a sample's chain. */
uint64_t perf_record_chain(const struct perf_record *r, const struct perf_format *f, uint32_t i);
