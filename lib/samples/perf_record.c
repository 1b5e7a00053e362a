/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "samples/perf_record.h"

#include <linux/perf_event.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"

#define SAMPLE_NEEDED                                                                              \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD)
/* Trailer of every record but samples: task, time, CPU. */
#define ID_SIZE 24
#define HEADER_SIZE 8
#define CHAIN_MAX 1024 /* the kernel's own limit is 127 unless it was raised */
#define BUILD_ID_MAX 20

bool perf_format_known(const struct perf_format *f)
{
	return (f->sample_type & ~(uint64_t)PERF_SAMPLE_CALLCHAIN) == SAMPLE_NEEDED;
}

uint64_t perf_record_chain(const struct perf_record *r, const struct perf_format *f, uint32_t i)
{
	return load_u64(r->sample.chain + (size_t)i * 8, f->big_endian);
}

static bool perf_read_sample(struct perf_record *r, const struct perf_format *f, const uint8_t *p,
			     size_t len)
{
	bool big = f->big_endian;
	uint64_t count;

	if (len < 40)
		return false;
	r->sample.ip = load_u64(p, big);
	r->pid = (int32_t)load_u32(p + 8, big);
	r->tid = (int32_t)load_u32(p + 12, big);
	r->time = load_u64(p + 16, big);
	r->cpu = load_u32(p + 24, big);
	r->sample.period = load_u64(p + 32, big);
	r->kind = PERF_SAMPLED;
	if (!(f->sample_type & PERF_SAMPLE_CALLCHAIN))
		return true;
	if (len < 48)
		return false;
	count = load_u64(p + 40, big);
	if (count > (len - 48) / 8)
		return false;
	r->sample.chain = p + 48;
	r->sample.count = (uint32_t)MIN(count, (uint64_t)CHAIN_MAX);
	return true;
}

/* Reads the trailer of a record that is not a sample. */
static bool perf_read_id(struct perf_record *r, bool big, const uint8_t *p, size_t *len)
{
	if (*len < ID_SIZE)
		return false;
	*len -= ID_SIZE;
	r->pid = (int32_t)load_u32(p + *len, big);
	r->tid = (int32_t)load_u32(p + *len + 4, big);
	r->time = load_u64(p + *len + 8, big);
	r->cpu = load_u32(p + *len + 16, big);
	return true;
}

static bool perf_read_map2(struct perf_record *r, bool big, unsigned misc, const uint8_t *p,
			   size_t len)
{
	if (len < 65 || p[len - 1] != '\0')
		return false;
	r->kind = PERF_MAPPED;
	r->pid = (int32_t)load_u32(p, big);
	r->map.start = load_u64(p + 8, big);
	r->map.length = load_u64(p + 16, big);
	r->map.offset = load_u64(p + 24, big);
	r->map.path = (const char *)p + 64;
	r->map.build_id = NULL;
	r->map.build_id_len = 0;
	if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID && p[32] <= BUILD_ID_MAX) {
		r->map.build_id = p + 36;
		r->map.build_id_len = p[32];
	}
	return true;
}

static bool perf_read_task(struct perf_record *r, bool big, uint32_t type, const uint8_t *p,
			   size_t len)
{
	uint32_t pid, parent, tid;

	if (len < 16)
		return false;
	pid = load_u32(p, big);
	parent = load_u32(p + 4, big);
	tid = load_u32(p + 8, big);
	r->pid = (int32_t)pid;
	r->tid = (int32_t)tid;
	if (type == PERF_RECORD_EXIT) {
		r->kind = pid == tid ? PERF_EXITED : PERF_NOTHING;
	} else if (pid != parent) {
		r->kind = PERF_FORKED;
		r->parent = (int32_t)parent;
	}
	return true;
}

static bool perf_read_other(struct perf_record *r, bool big, uint32_t type, unsigned misc,
			    const uint8_t *p, size_t len)
{
	if (!perf_read_id(r, big, p, &len))
		return false;
	switch (type) {
	case PERF_RECORD_MMAP2:
		return perf_read_map2(r, big, misc, p, len);
	case PERF_RECORD_COMM:
		if (misc & PERF_RECORD_MISC_COMM_EXEC)
			r->kind = PERF_EXECED;
		return true;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return perf_read_task(r, big, type, p, len);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		if (len < (type == PERF_RECORD_LOST ? 16U : 8U))
			return false;
		r->kind = PERF_LOST;
		r->lost = load_u64(p + (type == PERF_RECORD_LOST ? 8 : 0), big);
		return true;
	case PERF_RECORD_THROTTLE:
		r->kind = PERF_THROTTLED;
		return true;
	default:
		return true;
	}
}

size_t perf_record_read(struct perf_record *ret, const struct perf_format *f, const uint8_t *p,
			size_t len)
{
	uint32_t type;
	uint16_t misc, size;
	bool good;

	*ret = (struct perf_record){ .kind = PERF_NOTHING };
	if (len < HEADER_SIZE)
		return 0;
	type = load_u32(p, f->big_endian);
	misc = load_u16(p + 4, f->big_endian);
	size = load_u16(p + 6, f->big_endian);
	if (size < HEADER_SIZE || size > len || size % 8)
		return 0;
	ret->cpu_mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;
	ret->kernel = ret->cpu_mode == PERF_RECORD_MISC_KERNEL;
	good = type == PERF_RECORD_SAMPLE
		       ? perf_read_sample(ret, f, p + HEADER_SIZE, size - HEADER_SIZE)
		       : perf_read_other(ret, f->big_endian, type, misc, p + HEADER_SIZE,
					 size - HEADER_SIZE);
	return good ? size : 0;
}
