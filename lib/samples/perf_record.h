/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records of perf_event_open(2)'s rings, as <linux/perf_event.h> has them, of any byte
 * order. Programs choose what some of them say: each length is checked
 * against what encloses it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum perf_kind {
	PERF_NOTHING, /* none that is of use here */
	PERF_SAMPLED,
	PERF_MAPPED,
	PERF_EXECED,
	PERF_FORKED, /* a process; threads are PERF_NOTHING */
	PERF_EXITED, /* a process's first thread */
	PERF_LOST,
	PERF_THROTTLED,
};

/* In a sample's chain: what follows is of the kernel, of the program, or unknown. */
#define PERF_CHAIN_KERNEL ((uint64_t)-128)
#define PERF_CHAIN_USER ((uint64_t)-512)
#define PERF_CHAIN_CONTEXT ((uint64_t)-4095) /* and above: one of these */

struct perf_record {
	enum perf_kind kind;
	bool kernel;	  /* of a sample without a chain: it was in the kernel */
	uint64_t time;	  /* by the sampler's clock */
	int32_t pid, tid; /* of a fork: the child's */
	uint32_t cpu;
	union {
		struct {
			uint64_t ip, period;
			const uint8_t *chain; /* borrowed; count numbers of 8 bytes */
			uint32_t count;
		} sample;
		struct {
			uint64_t start, length, offset;
			const uint8_t *build_id; /* borrowed */
			size_t build_id_len;
			const char *path; /* borrowed, terminated */
		} map;
		int32_t parent; /* of a fork */
		uint64_t lost;
	};
};

struct perf_format {
	uint64_t sample_type;
	bool big_endian;
};
/* Whether records of that sample_type can be read: it has time, task and CPU, and nothing unknown.
 */
bool perf_format_known(const struct perf_format *f);

/* Bytes of the record at p; 0: what is there can't be one. ret borrows from p. */
size_t perf_record_read(struct perf_record *ret, const struct perf_format *f, const uint8_t *p,
			size_t len);
/* Number i of a sample's chain. */
uint64_t perf_record_chain(const struct perf_record *r, const struct perf_format *f, uint32_t i);
