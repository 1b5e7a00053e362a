/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parses user input: durations, sizes, shares, CPU lists. All return 0, -EINVAL, or -ERANGE (valid
 * but too large). On failure the result is untouched and err says what was expected.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

/* "10s", "500ms", "2m", "1h", "1.5s", "250us"; a bare number is seconds. Result in ns, above 0. */
int parse_duration(const char *text, uint64_t *ret_ns, struct error *err);
/*
 * "1408K", "16M", "1G", "65536". K, M, G, T are powers of 1024; "iB" or "B" may follow. Result in
 * bytes.
 */
int parse_size(const char *text, uint64_t *ret_bytes, struct error *err);

/* "2%", "2" or "0.5%": above 0 and at most 100, one decimal. Result in tenths of a per cent. */
int parse_percent(const char *text, unsigned *ret_permille, struct error *err);

/* A set of CPUs: bit n % 64 of word n / 64. */
struct cpu_set {
	uint64_t *bits; /* owned */
	unsigned words;
};
#define CPU_LIST_MAX 8192 /* higher CPU numbers are refused */
void cpu_set_deinit(struct cpu_set *set);
/* The kernel's list format: "0-3,8,10-11". An empty text gives the empty set. */
int parse_cpu_list(const char *text, struct cpu_set *ret, struct error *err);
bool cpu_set_has(const struct cpu_set *set, unsigned cpu);
unsigned cpu_set_count(const struct cpu_set *set);
/* Appends the list format. */
void cpu_set_format(const struct cpu_set *set, struct buf *out);
/* Appends the kernel's hexadecimal mask ("ff,ffffffff"), as in tracing_cpumask. */
void cpu_set_format_mask(const struct cpu_set *set, struct buf *out);

/* Append text for people: "1.4 MB", "12,345", "10.02 s". */
void format_bytes(uint64_t bytes, struct buf *out);
void format_count(uint64_t count, struct buf *out);
void format_duration(uint64_t ns, struct buf *out);
