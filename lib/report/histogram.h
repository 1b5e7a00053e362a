/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Distribution of a value, mostly of a time in ns. Values below 128 have a bucket each. Above, each
 * power of two has 64 buckets, so that a bucket's middle differs from its values by less than 1 %.
 * The layout never changes: histograms of different recordings can be added up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define HISTOGRAM_SUB_BITS 6
#define HISTOGRAM_BUCKETS                                                                          \
	(((64U - HISTOGRAM_SUB_BITS) << HISTOGRAM_SUB_BITS) + (1U << HISTOGRAM_SUB_BITS))
/* A bucket with more values than this keeps this count. */
#define HISTOGRAM_COUNT_MAX ((UINT64_C(1) << 48) - 1)

/* All zero: empty. Most tasks fill a few buckets, so these are a sorted list. */
struct histogram {
	uint64_t count, sum, max;
	uint64_t min;	   /* valid if count is not 0 */
	uint64_t *buckets; /* owned; sorted: the bucket's number << 48 | its count */
	uint32_t used, cap;
	/* Owned: where the buckets of each power of two begin. NULL: there are few buckets. */
	uint16_t *octaves;
};

/*
 * Buckets of the latest values of a histogram, which are not in it yet. They are looked up
 * together: with thousands of histograms each lookup waits for memory, and these waits overlap. All
 * zero: none.
 */
struct histogram_late {
	uint16_t buckets[7], count;
};

void histogram_deinit(struct histogram *h);

/* Adds a value. Returns 0 or -ENOMEM; then the value is in the sums, but in no bucket. */
int histogram_add(struct histogram *h, uint64_t value);
/* The same for a value of the time ts; *max_at becomes the time of the first largest value. */
int histogram_add_at(struct histogram *h, uint64_t value, uint64_t ts, uint64_t *max_at);
/* The same, but the value may be in no bucket before histogram_settle(). */
int histogram_add_late(struct histogram *h, struct histogram_late *late, uint64_t value,
		       uint64_t ts, uint64_t *max_at);
/* Before the buckets are read. Returns 0 or -ENOMEM. */
int histogram_settle(struct histogram *h, struct histogram_late *late);
/* Adds all values of another one. Returns 0 or -ENOMEM. */
int histogram_merge(struct histogram *h, const struct histogram *other);

/* Adds to a bucket alone, for a histogram that is read. Returns 0 or -ENOMEM. */
int histogram_put_bucket(struct histogram *h, uint32_t bucket, uint64_t count);
/* Whether its buckets agree with count, min and max. */
bool histogram_is_valid(const struct histogram *h);

uint64_t histogram_average(const struct histogram *h);
/*
 * The value that `part` of all values do not exceed, for example 0.99: the middle of its bucket, at
 * least min, at most max. 0: no values.
 */
uint64_t histogram_quantile(const struct histogram *h, double part);

/* The bucket of a value, and the least value of a bucket. */
uint32_t histogram_bucket(uint64_t value);
uint64_t histogram_bucket_from(uint32_t bucket);
