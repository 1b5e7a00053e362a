/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "settings/string_list.h"

#include <string.h>

#include "base/vec.h"

void string_list_deinit(struct string_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct string_list){ 0 };
}

int string_list_add_words(struct string_list *list, const char *text)
{
	static const char separators[] = " \t\n\r,";

	for (text += strspn(text, separators); *text; text += strspn(text, separators)) {
		size_t len = strcspn(text, separators);

		if (vec_reserve_exact(list->items, list->count, 2) < 0)
			return -ENOMEM;
		list->items[list->count] = strndup(text, len);
		if (!list->items[list->count])
			return -ENOMEM;
		list->items[++list->count] = NULL;
		text += len;
	}
	return 0;
}

int string_list_copy(struct string_list *ret, const struct string_list *from)
{
	struct string_list copy = { 0 };
	int r = 0;

	for (size_t i = 0; i < from->count && r >= 0; i++)
		r = string_list_add_words(&copy, from->items[i]);
	if (r < 0) {
		string_list_deinit(&copy);
		return r;
	}
	*ret = copy;
	return 0;
}
