/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "settings/setting.h"

#include <string.h>

#include "base/parse.h"
#include "settings/string_list.h"

const struct setting *setting_find(const struct setting *settings, size_t count,
				   const char *section, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(settings[i].section, section) == 0 &&
		    strcmp(settings[i].name, name) == 0)
			return &settings[i];
	return NULL;
}

int setting_string(void *field, const char *value, struct error *err)
{
	char *copy = strdup(value);

	if (!copy)
		return error_errno(err, -ENOMEM, "configuration");
	free(*(char **)field);
	*(char **)field = copy;
	return 0;
}

int setting_path(void *field, const char *value, struct error *err)
{
	if (value[0] != '/')
		return error_set(err, -EINVAL, "\"%s\" is not an absolute path", value);
	return setting_string(field, value, err);
}

#define COUNT_MAX 4096

int setting_count(void *field, const char *value, struct error *err)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno || end == value || *end || value[0] == '-' || n < 1 || n > COUNT_MAX)
		return error_set(err, -EINVAL, "\"%s\" is not a number from 1 to %d", value,
				 COUNT_MAX);
	*(unsigned *)field = (unsigned)n;
	return 0;
}

int setting_switch(void *field, const char *value, struct error *err)
{
	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return error_set(err, -EINVAL, "\"%s\" is neither yes nor no", value);
	*(bool *)field = value[0] == 'y';
	return 0;
}

int setting_size(void *field, const char *value, struct error *err)
{
	int r = parse_size(value, field, err);

	/* Require a unit: a guess would be wrong by a factor of 1000 for some users. */
	if (r == 0 && strchr("0123456789", value[strlen(value) - 1]))
		return error_set(err, -EINVAL, "'%s' has no unit: B, K, M or G", value);
	return r;
}

/* True for a value that means "no limit", stored as 0. */
static bool setting_is_none(const char *value)
{
	return strcmp(value, "none") == 0 || strcmp(value, "0") == 0;
}

int setting_size_limit(void *field, const char *value, struct error *err)
{
	*(uint64_t *)field = 0;
	return setting_is_none(value) ? 0 : setting_size(field, value, err);
}

int setting_duration_limit(void *field, const char *value, struct error *err)
{
	*(uint64_t *)field = 0;
	return setting_is_none(value) ? 0 : parse_duration(value, field, err);
}

int setting_word(void *field, const char *value, struct error *err)
{
	if (!*value || strpbrk(value, " \t/"))
		return error_set(err, -EINVAL, "\"%s\" is not one word", value);
	return setting_string(field, value, err);
}

int setting_words(void *field, const char *value, struct error *err)
{
	int r;

	if (!*value) {
		string_list_deinit(field);
		return 0;
	}
	r = string_list_add_words(field, value);
	return r < 0 ? error_errno(err, r, "configuration") : 0;
}
