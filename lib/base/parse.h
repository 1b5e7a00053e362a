/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What people type: durations, sizes, CPU lists. All return 0 or -EINVAL
 * (-ERANGE: well formed, but too large) and leave the result untouched on
 * failure; err says what was expected.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* "10s", "500ms", "2m", "1h", "1.5s", "250us"; a bare number is seconds. Result in ns, above 0. */
int parse_duration(const char *text, uint64_t *ret_ns, struct error *err);
/* "1408K", "16M", "1G", "65536"; K, M, G, T are powers of 1024, an "iB" or "B" may follow. Bytes.
 */
int parse_size(const char *text, uint64_t *ret_bytes, struct error *err);

/* A set of CPUs, bit n of word n / 64. */
struct cpu_set {
	uint64_t *bits; /* owned */
	unsigned words;
};
#define CPU_LIST_MAX 8192 /* CPUs numbered above this are refused */
void cpu_set_deinit(struct cpu_set *set);
/* The kernel's list format: "0-3,8,10-11". Empty text: the empty set. */
int parse_cpu_list(const char *text, struct cpu_set *ret, struct error *err);
bool cpu_set_has(const struct cpu_set *set, unsigned cpu);
unsigned cpu_set_count(const struct cpu_set *set);
/* Appends the list form. */
void cpu_set_format(const struct cpu_set *set, struct buf *out);
/* Appends the kernel's hexadecimal mask form ("ff,ffffffff"), as tracing_cpumask takes it. */
void cpu_set_format_mask(const struct cpu_set *set, struct buf *out);

/* Human forms, appended: "1.4 MB", "12,345", "10.02 s". */
void format_bytes(uint64_t bytes, struct buf *out);
void format_count(uint64_t count, struct buf *out);
void format_duration(uint64_t ns, struct buf *out);
