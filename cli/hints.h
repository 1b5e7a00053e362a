/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a mistyped command line may have meant. Each replaces the hint of err where it knows. */
#pragma once

#include "cli.h"

/* Words that command takes no more of (o->args[args_max]), or before an option it can't read. */
void hint_stray_word(const struct options *o, const struct command *command, struct error *err);
/*
 * An option that is not taken here. id: it is one of another place; OPT_COUNT:
 * of no place, letter (or 0) is what was typed. before: no command was read
 * yet, and words (NULL-terminated) are those that follow.
 */
void hint_foreign_option(int id, int letter, bool before, char *const *words, struct error *err);
/* -EINVAL, with what name may have meant. */
int command_unknown(const char *name, struct error *err);
