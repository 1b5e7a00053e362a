/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet/word.h"

#include <string.h>

#define ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define TEXT_MAX_LEN 255

static bool word_begins_well(const char *word)
{
	return *word && strchr(ALNUM, *word);
}

bool word_is_name(const char *word)
{
	size_t len = strspn(word, ALNUM "._-");

	return word_begins_well(word) && !word[len] && len <= WORD_NAME_MAX;
}

bool word_is_event(const char *word)
{
	size_t system = strspn(word, ALNUM "_*-"), event;

	if (!system || word[0] == '-' || system > WORD_NAME_MAX || word[system] != ':')
		return false;
	event = strspn(word + system + 1, ALNUM "_*-");
	return event && event <= WORD_NAME_MAX && !word[system + 1 + event];
}

bool word_is_label(const char *word)
{
	const char *equals = strchr(word, '=');
	char name[WORD_NAME_MAX + 1];
	size_t len = equals ? (size_t)(equals - word) : 0;

	if (!len || len >= sizeof(name))
		return false;
	memcpy(name, word, len);
	name[len] = '\0';
	return word_is_name(name) && equals[1] && word_is_printable(equals + 1);
}

bool word_is_query(const char *word)
{
	size_t name = strspn(word, ALNUM "_.-");

	return name && word[name] == '=' && strlen(word) <= TEXT_MAX_LEN &&
	       !word[name + 1 + strspn(word + name + 1, ALNUM "_.~%/:-")];
}

bool word_is_printable(const char *text)
{
	size_t len = 0;

	for (; text[len]; len++)
		if (text[len] < ' ' || text[len] > '~')
			return false;
	return len <= TEXT_MAX_LEN;
}
