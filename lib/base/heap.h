/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Binary heaps in arrays owned by the caller. heap[0] is the first element. Elements are copied
 * when they move, so they are mostly pointers. The heap does not track their indexes.
 *
 * Why no library: those in Debian compare through a pointer (slow for each event), or allocate.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

/*
 * Defines the functions of a heap of type. `earlier` is an expression of the type's variables a and
 * b, true if a comes out before b:
 *
 * 	name_sift_down(heap, count, at)   call it if the element at index `at` became later
 * 	name_sift_up(heap, at)            call it if it became earlier; at < count
 * 	name_build(heap, count)           makes a heap of any array
 * 	name_push(heap, &count, element)  the array must have room
 * 	name_pop(heap, &count)            removes heap[0]; the count must not be 0
 *
 * The compiler decides whether to inline the loops: where a hot caller rarely needs them, a call
 * saves registers.
 */
#define DEFINE_HEAP(name, type, earlier)                                                           \
	static inline _unused_ bool name##_earlier(type const a, type const b)                     \
	{                                                                                          \
		return (earlier);                                                                  \
	}                                                                                          \
                                                                                                   \
	static _unused_ void name##_sift_down(type *heap, size_t count, size_t at)                 \
	{                                                                                          \
		type const moving = heap[at];                                                      \
		size_t child;                                                                      \
                                                                                                   \
		for (; (child = 2 * at + 1) < count; at = child) {                                 \
			if (likely(child + 1 < count))                                             \
				child += name##_earlier(heap[child + 1], heap[child]);             \
			if (!name##_earlier(heap[child], moving))                                  \
				break;                                                             \
			heap[at] = heap[child];                                                    \
		}                                                                                  \
		heap[at] = moving;                                                                 \
	}                                                                                          \
                                                                                                   \
	static _unused_ void name##_sift_up(type *heap, size_t at)                                 \
	{                                                                                          \
		type const moving = heap[at];                                                      \
                                                                                                   \
		for (; at && name##_earlier(moving, heap[(at - 1) / 2]); at = (at - 1) / 2)        \
			heap[at] = heap[(at - 1) / 2];                                             \
		heap[at] = moving;                                                                 \
	}                                                                                          \
                                                                                                   \
	static inline _unused_ void name##_build(type *heap, size_t count)                         \
	{                                                                                          \
		for (size_t i = count / 2; i-- > 0;)                                               \
			name##_sift_down(heap, count, i);                                          \
	}                                                                                          \
                                                                                                   \
	static inline _unused_ void name##_push(type *heap, size_t *count, type const element)     \
	{                                                                                          \
		heap[*count] = element;                                                            \
		name##_sift_up(heap, (*count)++);                                                  \
	}                                                                                          \
                                                                                                   \
	static inline _unused_ void name##_pop(type *heap, size_t *count)                          \
	{                                                                                          \
		heap[0] = heap[--*count];                                                          \
		if (*count > 1)                                                                    \
			name##_sift_down(heap, *count, 0);                                         \
	}                                                                                          \
	struct heap_wants_a_semicolon
