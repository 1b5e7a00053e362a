/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hash tables with open addressing and linear probing, at most half full. Elements are stored in
 * the slots and move when the table grows or an element is removed: do not keep pointers across
 * that. An all-zero table is empty. New slots are all zero; a free slot must count as unused.
 *
 * 	DECLARE_TABLE(label_slots, struct label);                        struct label_slots
 * 	DEFINE_TABLE(label_slots, struct label, uint32_t,
 * 		     slot->id != 0,                                      the slot is used
 * 		     hash_id(slot->id),                                  the hash of its key
 * 		     slot->id == key);                                   it has the key
 *
 * A key may be stored elsewhere, for example if slots are indexes into an array. Then store the
 * hash in the slot, and the array in the key type. The low bits of the hash count: multiply, then
 * shift the high bits down. If a stranger can choose keys, use base/secret_hash.h, and write
 * nothing in the order of the slots.
 *
 * Why no library: uthash takes a malloc and 56 bytes per element and by default exits when out of
 * memory; libck's ck_ht stores pointers and hashes through a callback; klib is not in Debian. None
 * grows at these fixed sizes, on which the order of some output depends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

#define TABLE_FIRST 64
#define TABLE_SIZE_MAX (UINT32_C(1) << 31)

#define DECLARE_TABLE(name, type)                                                                  \
	struct name {                                                                              \
		type *slots;	      /* owned; `size` of them */                                  \
		uint32_t count, size; /* used slots; all slots: a power of two, or 0 */            \
	}

/*
 * Defines the functions of a table. used, hash_of and same are expressions as above. hash: the
 * key's hash; on 32 bits its low half counts.
 *
 * 	name_find(t, hash, key)   the slot with the key, or NULL
 * 	name_place(t, hash, key)  that slot or, if there is none, a free one: to add the element,
 * 	                          fill it and add 1 to t->count; NULL: out of memory
 * 	name_reserve(t, count)    0: name_place() does not grow the table for the next `count`
 * 	                          elements; or -ENOMEM
 * 	name_remove(t, slot)      moves later elements up; slot may then hold one of these
 * 	name_next(t, slot)        the used slot after slot, or after NULL; NULL at the end
 */
#define DEFINE_TABLE(name, type, key_type, used, hash_of, same)                                    \
	static inline _unused_ bool name##_is_used(type const *slot)                               \
	{                                                                                          \
		return (used);                                                                     \
	}                                                                                          \
                                                                                                   \
	static inline _unused_ type *name##_probe(type *slots, uint32_t size, uint64_t hash,       \
						  key_type key)                                    \
	{                                                                                          \
		for (size_t at = (size_t)hash;; at++) {                                            \
			type *slot = &slots[at & (size - 1)];                                      \
                                                                                                   \
			if (!name##_is_used(slot) || (same))                                       \
				return slot;                                                       \
		}                                                                                  \
	}                                                                                          \
                                                                                                   \
	static inline _unused_ type *name##_find(const struct name *t, uint64_t hash,              \
						 key_type key)                                     \
	{                                                                                          \
		type *found;                                                                       \
                                                                                                   \
		if (unlikely(!t->size))                                                            \
			return NULL;                                                               \
		found = name##_probe(t->slots, t->size, hash, key);                                \
		return name##_is_used(found) ? found : NULL;                                       \
	}                                                                                          \
                                                                                                   \
	static _cold_ _noinline_ _unused_ int name##_resize(struct name *t, uint32_t size)         \
	{                                                                                          \
		type *slots = size ? calloc(size, sizeof(*slots)) : NULL;                          \
                                                                                                   \
		if (!slots)                                                                        \
			return -ENOMEM;                                                            \
		for (uint32_t i = 0; i < t->size; i++) {                                           \
			type const *slot = &t->slots[i];                                           \
			size_t at;                                                                 \
                                                                                                   \
			if (!name##_is_used(slot))                                                 \
				continue;                                                          \
			for (at = (size_t)(hash_of); name##_is_used(&slots[at & (size - 1)]);      \
			     at++)                                                                 \
				;                                                                  \
			slots[at & (size - 1)] = *slot;                                            \
		}                                                                                  \
		free(t->slots);                                                                    \
		t->slots = slots;                                                                  \
		t->size = size;                                                                    \
		return 0;                                                                          \
	}                                                                                          \
                                                                                                   \
	static inline _unused_ int name##_reserve(struct name *t, uint32_t count)                  \
	{                                                                                          \
		return (uint64_t)count * 2 > t->size                                               \
			       ? name##_resize(t, table_size_for(count, t->size))                  \
			       : 0;                                                                \
	}                                                                                          \
                                                                                                   \
	static inline _unused_ type *name##_place(struct name *t, uint64_t hash, key_type key)     \
	{                                                                                          \
		if (unlikely((uint64_t)t->count * 2 >= t->size) &&                                 \
		    name##_resize(t, table_size_for(t->count + 1, t->size)) < 0)                   \
			return NULL;                                                               \
		return name##_probe(t->slots, t->size, hash, key);                                 \
	}                                                                                          \
                                                                                                   \
	static inline _unused_ void name##_remove(struct name *t, type *hole)                      \
	{                                                                                          \
		uint32_t mask = t->size - 1, to = (uint32_t)(hole - t->slots), at = to;            \
                                                                                                   \
		for (;;) {                                                                         \
			type const *slot = &t->slots[at = (at + 1) & mask];                        \
                                                                                                   \
			if (!name##_is_used(slot))                                                 \
				break;                                                             \
			/* Keep it if its home lies after the hole. */                             \
			if (((at - (uint32_t)(hash_of)) & mask) < ((at - to) & mask))              \
				continue;                                                          \
			t->slots[to] = *slot;                                                      \
			to = at;                                                                   \
		}                                                                                  \
		memset(&t->slots[to], 0, sizeof(*t->slots));                                       \
		t->count--;                                                                        \
	}                                                                                          \
                                                                                                   \
	static inline _unused_ type *name##_next(const struct name *t, type const *slot)           \
	{                                                                                          \
		for (size_t i = slot ? (size_t)(slot - t->slots) + 1 : 0; i < t->size; i++)        \
			if (name##_is_used(&t->slots[i]))                                          \
				return &t->slots[i];                                               \
		return NULL;                                                                       \
	}                                                                                          \
	struct table_wants_a_semicolon

/* The size at which a table of that size is at most half full with count elements. 0: too many. */
static inline uint32_t table_size_for(uint32_t count, uint32_t size)
{
	uint64_t bigger = MAX(size, (uint32_t)TABLE_FIRST);

	while (bigger < (uint64_t)count * 2)
		bigger *= 2;
	return bigger <= TABLE_SIZE_MAX ? (uint32_t)bigger : 0;
}

/* Visits each used slot. Do not add elements in the loop. */
#define TABLE_FOR_EACH(name, t, slot)                                                              \
	for (__typeof__(name##_next((t), NULL)) slot = NULL; (slot = name##_next((t), slot));)

/* Empties a table of any type and keeps its memory. */
#define TABLE_CLEAR(t)                                                                             \
	({                                                                                         \
		if ((t)->size)                                                                     \
			memset((t)->slots, 0, (t)->size * sizeof(*(t)->slots));                    \
		(t)->count = 0;                                                                    \
	})

/* Frees the slots of a table of any type, but nothing that the elements own. */
#define TABLE_DEINIT(t)                                                                            \
	({                                                                                         \
		free((t)->slots);                                                                  \
		*(t) = (__typeof__(*(t))){ 0 };                                                    \
	})
