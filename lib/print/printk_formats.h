/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Strings of the recorded kernel's printk_formats, by address. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena;

struct printk_formats {
	struct printk_format {
		uint64_t address;
		const char *text; /* in the arena */
	} * all;		  /* owned */
	size_t count, cap;
	size_t longest; /* bytes of the longest text */
};

void printk_formats_deinit(struct printk_formats *f);
/*
 * Adds lines '0xADDR : "text"'; other lines are skipped. The arena holds the texts and must outlive
 * f. Returns 0 or -ENOMEM.
 */
int printk_formats_add(struct printk_formats *f, struct arena *arena, const char *text, size_t len);
/* Call it after the last add and before the first find. */
void printk_formats_sort(struct printk_formats *f);
/* Borrowed from f and its arena. NULL: not found. */
const char *printk_formats_find(const struct printk_formats *f, uint64_t address);
