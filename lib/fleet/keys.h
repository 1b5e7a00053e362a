/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * INI files in which a mistake must not pass: an unknown key, a key that is assigned twice or an
 * invalid value is an error. Only a list or a text may go on in an indented line.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "settings/setting.h"

#define KEYS_MAX 64
#define KEYS_TEXT_MAX 4000

/* Reads file into object. path is for messages. settings: at most KEYS_MAX. */
int keys_read(FILE *file, const char *path, const struct setting *settings, size_t count,
	      void *object, struct error *err);

/* Setters that only the agent needs. */
int keys_set_name(void *field, const char *value, struct error *err);	/* char * */
int keys_set_names(void *field, const char *value, struct error *err);	/* struct string_list */
int keys_set_events(void *field, const char *value, struct error *err); /* struct string_list */
int keys_set_labels(void *field, const char *value, struct error *err); /* struct string_list */
int keys_set_query(void *field, const char *value, struct error *err);	/* struct string_list */
/* char *: up to KEYS_TEXT_MAX printable characters; blanks join its lines. */
int keys_set_text(void *field, const char *value, struct error *err);
int keys_set_duration(void *field, const char *value, struct error *err); /* uint64_t: ns */
int keys_set_percent(void *field, const char *value, struct error *err);  /* unsigned: permille */
