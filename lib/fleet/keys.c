/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet/keys.h"

#include <string.h>

#include "base/parse.h"
#include "fleet/word.h"
#include "settings/ini_reader.h"
#include "settings/string_list.h"

/* The longest list of words. */
#define WORDS_MAX 32

struct keys {
	struct ini_reader reader;
	const struct setting *settings;
	size_t count;
	void *object;
	uint64_t seen; /* a bit for each key */
};

static bool keys_may_go_on(const struct setting *key)
{
	return key->set == keys_set_names || key->set == keys_set_events ||
	       key->set == keys_set_labels || key->set == keys_set_query ||
	       key->set == keys_set_text;
}

static int keys_take(struct ini_reader *reader, const char *section, const char *name,
		     const char *value)
{
	struct keys *k = container_of(reader, struct keys, reader);
	const struct setting *key = setting_find(k->settings, k->count, section, name);
	uint64_t bit = key ? UINT64_C(1) << (key - k->settings) : 0;

	if (!key)
		return error_set(reader->err, -EINVAL, "there is no such key in [%s]", section);
	if ((k->seen & bit) && !(reader->is_continued && keys_may_go_on(key)))
		return error_set(reader->err, -EINVAL, "the key is assigned twice");
	k->seen |= bit;
	return key->set((char *)k->object + key->offset, value, reader->err);
}

int keys_read(FILE *file, const char *path, const struct setting *settings, size_t count,
	      void *object, struct error *err)
{
	struct keys k = { .reader = { .file = file, .path = path, .take = keys_take, .err = err },
			  .settings = settings,
			  .count = count,
			  .object = object };

	return ini_read(&k.reader);
}

static int keys_set_list(struct string_list *list, const char *value,
			 bool (*is_valid)(const char *word), const char *what, struct error *err)
{
	size_t i = list->count;
	int r = string_list_add_words(list, value);

	if (r < 0)
		return error_errno(err, r, "%s", what);
	if (list->count > WORDS_MAX)
		return error_set(err, -EINVAL, "there are more than %d words", WORDS_MAX);
	for (; i < list->count; i++)
		if (!is_valid(list->items[i]))
			return error_set(err, -EINVAL, "a word is not %s", what);
	return 0;
}

int keys_set_name(void *field, const char *value, struct error *err)
{
	if (!word_is_name(value))
		return error_set(err, -EINVAL, "the value is not a name");
	return setting_string(field, value, err);
}

int keys_set_names(void *field, const char *value, struct error *err)
{
	return keys_set_list(field, value, word_is_name, "a name", err);
}

int keys_set_events(void *field, const char *value, struct error *err)
{
	return keys_set_list(field, value, word_is_event, "SYSTEM:EVENT", err);
}

int keys_set_labels(void *field, const char *value, struct error *err)
{
	return keys_set_list(field, value, word_is_label, "NAME=VALUE", err);
}

int keys_set_query(void *field, const char *value, struct error *err)
{
	return keys_set_list(field, value, word_is_query, "NAME=VALUE of a URL", err);
}

int keys_set_text(void *field, const char *value, struct error *err)
{
	_cleanup_free_ char *joined = NULL;
	const char *before = *(char **)field;

	for (const char *p = value; *p; p++)
		if (*p < ' ' || *p > '~')
			return error_set(err, -EINVAL, "the value is not printable");
	if (!*value || strlen(value) + (before ? strlen(before) + 1 : 0) > KEYS_TEXT_MAX)
		return error_set(err, -EINVAL, "the value is empty or too long");
	if (asprintf(&joined, "%s%s%s", before ?: "", before ? " " : "", value) < 0)
		return error_errno(err, -ENOMEM, "the text");
	return setting_string(field, joined, err);
}

int keys_set_duration(void *field, const char *value, struct error *err)
{
	return parse_duration(value, field, err);
}

int keys_set_percent(void *field, const char *value, struct error *err)
{
	return parse_percent(value, field, err);
}
