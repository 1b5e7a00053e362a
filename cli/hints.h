/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Guesses what a mistyped command line meant. Each replaces err's hint if it has a better one. */
#pragma once

#include "cli.h"

/* For an argument too many (o->args[args_max]), or before an unknown option. */
void hint_stray_word(const struct options *o, const struct command *command, struct error *err);
/* For an unknown option; true: there is a hint. */
bool hint_other_name(const char *name, struct error *err);
/*
 * For an option that is not allowed here. id: the option; OPT_COUNT: unknown, `letter` (or 0) was
 * typed. before: no command was read yet; words (NULL-terminated) follow.
 */
void hint_foreign_option(int id, int letter, bool before, char *const *words, struct error *err);
/* -EINVAL, with similar commands. */
int command_unknown(const char *name, struct error *err);
