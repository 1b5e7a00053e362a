/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Converts a probe from what the user types to what the daemon expects. */
#pragma once

#include "cli.h"

/*
 * Returns in *ret, to be freed, the definition with an offset in place of a program's function:
 * "p:NAME /PATH:FUNCTION+8 ARGUMENTS". Without a name, the event gets the function's. Errors of
 * function_place_find(), which reads the program.
 */
int probe_definition(char **ret, const struct probe_option *probe, struct error *err);
