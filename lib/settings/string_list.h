/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lists of words. */
#pragma once

#include <stddef.h>

/* NULL-terminated; owned. */
struct string_list {
	char **items;
	size_t count;
};
void string_list_deinit(struct string_list *list);
/* Appends the words of text, separated by blanks and commas. */
int string_list_add_words(struct string_list *list, const char *text);
int string_list_copy(struct string_list *ret, const struct string_list *from);
