/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Growable arrays made of three variables or members: data, count and cap, of any integer type. An
 * all-zero array is empty; free(data) releases it. The macros evaluate data, count and cap more
 * than once. cap never exceeds its type, so count, of the same type, cannot overflow.
 *
 * Why no library: glib and ccan's tal abort or need their own allocator; uthash's utarray exits
 * when out of memory; klib's kvec ignores that. None works on existing struct members.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

/*
 * Slow path of vec_reserve(): makes room for extra more elements of size bytes, and at least
 * doubles *cap. NULL: out of memory or beyond max elements; data is still valid then.
 */
void *vec_grow(void *data, size_t count, size_t extra, size_t *cap, size_t max, size_t size);

/* The largest value of an integer expression's type. */
#define VEC_TYPE_MAX(x)                                                                            \
	((size_t)((__typeof__(x))-1 > 0                                                            \
			  ? (__typeof__(x))-1                                                      \
			  : (((__typeof__(x))1 << (sizeof(x) * 8 - 2)) - 1) * 2 + 1))

/* The most elements that data may have if x counts them. */
#define VEC_MAX(data, x)                                                                           \
	(VEC_TYPE_MAX(x) < PTRDIFF_MAX / sizeof(*(data)) ? VEC_TYPE_MAX(x)                         \
							 : PTRDIFF_MAX / sizeof(*(data)))

/* Makes room for extra more elements. Returns 0 or -ENOMEM. */
#define vec_reserve(data, count, cap, extra)                                                       \
	({                                                                                         \
		size_t _vec_extra = (extra);                                                       \
		int _vec_r = 0;                                                                    \
		if (unlikely((size_t)(cap) - (size_t)(count) < _vec_extra)) {                      \
			size_t _vec_cap = (size_t)(cap);                                           \
			void *_vec_p = vec_grow((data), (size_t)(count), _vec_extra, &_vec_cap,    \
						VEC_MAX(data, cap), sizeof(*(data)));              \
			if (_vec_p) {                                                              \
				(data) = _vec_p;                                                   \
				(cap) = (__typeof__(cap))_vec_cap;                                 \
			} else {                                                                   \
				_vec_r = -ENOMEM;                                                  \
			}                                                                          \
		}                                                                                  \
		_vec_r;                                                                            \
	})

/* Adds one element, not initialized. Returns NULL if out of memory. */
#define vec_add(data, count, cap)                                                                  \
	(likely(vec_reserve(data, count, cap, 1) == 0) ? &(data)[(count)++] : NULL)

/* Appends a value, which may be an initializer with commas. Returns 0 or -ENOMEM. */
#define vec_push(data, count, cap, ...)                                                            \
	(likely(vec_reserve(data, count, cap, 1) == 0) ? ((data)[(count)++] = (__VA_ARGS__), 0)    \
						       : -ENOMEM)

/* Like vec_add(), but inserts at index `at`, up to count, and moves later elements up. */
#define vec_insert(data, count, cap, at)                                                           \
	({                                                                                         \
		size_t _vec_at = (at);                                                             \
		__typeof__(data) _vec_gap = NULL;                                                  \
		if (likely(vec_reserve(data, count, cap, 1) == 0)) {                               \
			_vec_gap = (data) + _vec_at;                                               \
			memmove(_vec_gap + 1, _vec_gap,                                            \
				((size_t)(count)-_vec_at) * sizeof(*_vec_gap));                    \
			(count)++;                                                                 \
		}                                                                                  \
		_vec_gap;                                                                          \
	})

/* Removes extra elements at index `at` and moves later elements down. */
#define vec_remove(data, count, at, extra)                                                         \
	({                                                                                         \
		size_t _vec_at = (at), _vec_gone = (extra);                                        \
		/* data may be NULL if it is empty, which memmove() does not take. */              \
		if (_vec_gone)                                                                     \
			memmove((data) + _vec_at, (data) + _vec_at + _vec_gone,                    \
				((size_t)(count)-_vec_at - _vec_gone) * sizeof(*(data)));          \
		(count) -= (__typeof__(count))_vec_gone;                                           \
	})

/*
 * For short lists without cap: makes room for exactly extra more elements. Returns 0 or -ENOMEM.
 * Each append reallocates.
 */
#define vec_reserve_exact(data, count, extra)                                                      \
	({                                                                                         \
		size_t _vec_need = 0;                                                              \
		void *_vec_p = NULL;                                                               \
		if (!__builtin_add_overflow((size_t)(count), (size_t)(extra), &_vec_need) &&       \
		    _vec_need <= VEC_MAX(data, count))                                             \
			_vec_p = reallocarray((data), _vec_need + !_vec_need, sizeof(*(data)));    \
		if (_vec_p)                                                                        \
			(data) = _vec_p;                                                           \
		_vec_p ? 0 : -ENOMEM;                                                              \
	})

#define vec_add_exact(data, count)                                                                 \
	(likely(vec_reserve_exact(data, count, 1) == 0) ? &(data)[(count)++] : NULL)
