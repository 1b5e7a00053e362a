/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Keys of INI files, and how their values are stored. A setter stores value in the field, or
 * returns a negative errno and says in err what it expected.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

struct setting {
	const char *section, *name;
	size_t offset; /* of the field in the object that the file describes */
	int (*set)(void *field, const char *value, struct error *err);
};

/* NULL: there is no such key. */
const struct setting *setting_find(const struct setting *settings, size_t count,
				   const char *section, const char *name);

int setting_string(void *field, const char *value, struct error *err);	   /* char *: any */
int setting_path(void *field, const char *value, struct error *err);	   /* char *: absolute */
int setting_count(void *field, const char *value, struct error *err);	   /* unsigned: 1 to 4096 */
int setting_switch(void *field, const char *value, struct error *err);	   /* bool: yes or no */
int setting_size(void *field, const char *value, struct error *err);	   /* uint64_t: bytes */
int setting_size_limit(void *field, const char *value, struct error *err); /* 0: none */
int setting_duration_limit(void *field, const char *value, struct error *err); /* ns; 0: none */
int setting_word(void *field, const char *value, struct error *err);	       /* char * */
/* struct string_list: appends; an empty value clears it. */
int setting_words(void *field, const char *value, struct error *err);
