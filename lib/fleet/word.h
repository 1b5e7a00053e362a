/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks of words that end up in a child's arguments, in names of files and in URLs. */
#pragma once

#include <stdbool.h>

#define WORD_NAME_MAX 64

/* A name of up to 64 letters, digits, ".", "_" and "-"; it begins with a letter or a digit. */
bool word_is_name(const char *word);
/*
 * SYSTEM:EVENT, with "*" for any characters, as a glob of events. Neither "?" nor brackets: then an
 * order's glob matches no more events than an allowed glob that matches its text.
 */
bool word_is_event(const char *word);
/* NAME=GLOB */
bool word_is_label(const char *word);
/* NAME=VALUE of a URL's query, escaped: no character in it has a meaning beside '%'. */
bool word_is_query(const char *word);
/* Up to 255 printable characters of ASCII. */
bool word_is_printable(const char *text);
