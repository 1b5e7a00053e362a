/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A probe as it is typed, and as the daemon takes it. */
#pragma once

#include "cli.h"

/*
 * Puts into *ret, to be freed, the definition with an offset where a program's function is named:
 * "p:NAME /PATH:FUNCTION+8 ARGUMENTS". Without a name the event is called as the function.
 * Errors as of function_place_find(): it alone reads the program.
 */
int probe_definition(char **ret, const struct probe_option *probe, struct error *err);
