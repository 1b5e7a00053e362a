/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/histogram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"

#define COUNT_BITS 48

void histogram_deinit(struct histogram *h)
{
	free(h->buckets);
	free(h->octaves);
	*h = (struct histogram){ 0 };
}

uint32_t histogram_bucket(uint64_t value)
{
	unsigned shift;

	if (value < 1U << (HISTOGRAM_SUB_BITS + 1))
		return (uint32_t)value;
	shift = 63U - (unsigned)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
	return (shift << HISTOGRAM_SUB_BITS) + (uint32_t)(value >> shift);
}

uint64_t histogram_bucket_from(uint32_t bucket)
{
	uint32_t shift = bucket >> HISTOGRAM_SUB_BITS;

	if (shift < 2)
		return bucket;
	shift--;
	return (uint64_t)(bucket - (shift << HISTOGRAM_SUB_BITS)) << shift;
}

static uint64_t histogram_bucket_middle(uint32_t bucket)
{
	uint64_t from = histogram_bucket_from(bucket);

	/* The last bucket's end does not fit into 64 bits. */
	return from + (histogram_bucket_from(bucket + 1) - from) / 2;
}

/* With so many buckets, most of a distribution's powers of two are nearly full. */
#define OCTAVES_FROM 48U
#define OCTAVES ((HISTOGRAM_BUCKETS >> HISTOGRAM_SUB_BITS) + 1)

static int histogram_make_octaves(struct histogram *h)
{
	uint32_t i = 0;

	h->octaves = malloc(OCTAVES * sizeof(*h->octaves));
	if (!h->octaves)
		return -ENOMEM;
	for (uint32_t octave = 0; octave < OCTAVES; octave++) {
		const uint64_t from = (uint64_t)octave << (COUNT_BITS + HISTOGRAM_SUB_BITS);

		while (i < h->used && h->buckets[i] < from)
			i++;
		h->octaves[octave] = (uint16_t)i;
	}
	return 0;
}

/* The place of a bucket if its power of two is filled evenly; needs octaves. */
static uint32_t histogram_guess(const struct histogram *h, uint32_t bucket)
{
	const uint32_t octave = bucket >> HISTOGRAM_SUB_BITS;
	const uint32_t from = h->octaves[octave], end = h->octaves[octave + 1];
	const uint32_t at = bucket % (1U << HISTOGRAM_SUB_BITS);

	return from + (at * (end - from) >> HISTOGRAM_SUB_BITS);
}

/*
 * The place of the first bucket that is not less. Within a power of two the buckets are spread so
 * evenly that it is near the guess; a binary search would guess wrong in half of its steps.
 */
static uint32_t histogram_find(const struct histogram *h, uint32_t bucket)
{
	const uint64_t key = (uint64_t)bucket << COUNT_BITS;
	const uint32_t octave = bucket >> HISTOGRAM_SUB_BITS;
	uint32_t from, end, at;

	if (!h->octaves)
		return lower_bound(i, h->used, h->buckets[i] < key);
	from = h->octaves[octave];
	end = h->octaves[octave + 1];
	at = histogram_guess(h, bucket);
	while (at < end && h->buckets[at] < key)
		at++;
	while (at > from && h->buckets[at - 1] >= key)
		at--;
	return at;
}

int histogram_put_bucket(struct histogram *h, uint32_t bucket, uint64_t count)
{
	const uint64_t key = (uint64_t)bucket << COUNT_BITS;
	const uint32_t at = histogram_find(h, bucket);
	uint64_t *slot;

	if (at < h->used && h->buckets[at] >> COUNT_BITS == bucket) {
		uint64_t room = HISTOGRAM_COUNT_MAX - (h->buckets[at] & HISTOGRAM_COUNT_MAX);

		h->buckets[at] += MIN(count, room);
		return 0;
	}
	/* Most histograms of many tasks have few buckets. */
	if (h->used == h->cap && h->cap < 16) {
		if (vec_reserve_exact(h->buckets, h->used, MAX(h->cap, 2U)) < 0)
			return -ENOMEM;
		h->cap += MAX(h->cap, 2U);
	}
	slot = vec_insert(h->buckets, h->used, h->cap, at);
	if (!slot)
		return -ENOMEM;
	*slot = key | MIN(count, HISTOGRAM_COUNT_MAX);
	for (uint32_t i = (bucket >> HISTOGRAM_SUB_BITS) + 1; h->octaves && i < OCTAVES; i++)
		h->octaves[i]++;
	return h->octaves || h->used < OCTAVES_FROM ? 0 : histogram_make_octaves(h);
}

static void histogram_sum_up(struct histogram *h, uint64_t value)
{
	if (!h->count || value < h->min)
		h->min = value;
	h->max = MAX(h->max, value);
	h->count++;
	if (__builtin_add_overflow(h->sum, value, &h->sum))
		h->sum = UINT64_MAX;
}

int histogram_add(struct histogram *h, uint64_t value)
{
	histogram_sum_up(h, value);
	return histogram_put_bucket(h, histogram_bucket(value), 1);
}

int histogram_add_at(struct histogram *h, uint64_t value, uint64_t ts, uint64_t *max_at)
{
	if (!h->count || value > h->max)
		*max_at = ts;
	return histogram_add(h, value);
}

int histogram_add_late(struct histogram *h, struct histogram_late *late, uint64_t value,
		       uint64_t ts, uint64_t *max_at)
{
	if (!h->count || value > h->max)
		*max_at = ts;
	histogram_sum_up(h, value);
	late->buckets[late->count++] = (uint16_t)histogram_bucket(value);
	return late->count < ARRAY_SIZE(late->buckets) ? 0 : histogram_settle(h, late);
}

int histogram_settle(struct histogram *h, struct histogram_late *late)
{
	const unsigned count = late->count;
	int r = 0;

	late->count = 0;
	for (unsigned i = 0; i < count && h->octaves; i++)
		__builtin_prefetch(&h->buckets[histogram_guess(h, late->buckets[i])], 1);
	for (unsigned i = 0; i < count && r == 0; i++)
		r = histogram_put_bucket(h, late->buckets[i], 1);
	return r;
}

int histogram_merge(struct histogram *h, const struct histogram *other)
{
	int r = 0;

	if (!other->count)
		return 0;
	h->min = h->count ? MIN(h->min, other->min) : other->min;
	h->max = MAX(h->max, other->max);
	if (__builtin_add_overflow(h->count, other->count, &h->count))
		h->count = UINT64_MAX;
	if (__builtin_add_overflow(h->sum, other->sum, &h->sum))
		h->sum = UINT64_MAX;
	for (uint32_t i = 0; i < other->used && r == 0; i++)
		r = histogram_put_bucket(h, (uint32_t)(other->buckets[i] >> COUNT_BITS),
					 other->buckets[i] & HISTOGRAM_COUNT_MAX);
	return r;
}

bool histogram_is_valid(const struct histogram *h)
{
	uint64_t sum = 0;
	bool is_full = false;

	if (!h->count || !h->used)
		return !h->count && !h->used && !h->sum && !h->max;
	for (uint32_t i = 0; i < h->used; i++) {
		uint64_t count = h->buckets[i] & HISTOGRAM_COUNT_MAX;

		is_full |= count == HISTOGRAM_COUNT_MAX;
		sum += count;
	}
	return (is_full ? sum <= h->count : sum == h->count) && h->min <= h->max &&
	       histogram_bucket(h->min) == h->buckets[0] >> COUNT_BITS &&
	       histogram_bucket(h->max) == h->buckets[h->used - 1] >> COUNT_BITS;
}

uint64_t histogram_average(const struct histogram *h)
{
	return h->count ? h->sum / h->count : 0;
}

uint64_t histogram_quantile(const struct histogram *h, double part)
{
	uint64_t wanted = (uint64_t)((double)h->count * part), passed = 0;

	/* The value number `wanted`, counted from 1, rounded up. */
	if ((double)wanted < (double)h->count * part || !wanted)
		wanted++;
	if (wanted >= h->count)
		return h->max;
	for (uint32_t i = 0; i < h->used; i++) {
		uint64_t middle;

		passed += h->buckets[i] & HISTOGRAM_COUNT_MAX;
		if (passed < wanted)
			continue;
		middle = histogram_bucket_middle((uint32_t)(h->buckets[i] >> COUNT_BITS));
		return MIN(MAX(middle, h->min), h->max);
	}
	return h->max;
}
