/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The strings of the recorded kernel's printk_formats, by their addresses. */
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
};

void printk_formats_deinit(struct printk_formats *f);
/* Lines '0xADDR : "text"'; others are skipped. arena, of their texts, outlives f. 0 or -ENOMEM. */
int printk_formats_add(struct printk_formats *f, struct arena *arena, const char *text, size_t len);
/* Once all were added, before the first is looked for. */
void printk_formats_sort(struct printk_formats *f);
/* Borrowed, until f or its arena ends; NULL: there is none. */
const char *printk_formats_find(const struct printk_formats *f, uint64_t address);
