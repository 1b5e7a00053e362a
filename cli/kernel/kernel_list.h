/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `tracectl list clocks`, `tracers` and `options`: what this kernel offers. */
#pragma once

#include "cli.h"

/* The words that kernel_list_run() takes; ended by NULL. */
extern const char *const kernel_list_words[];
/* Prints one word a line, or JSON. Returns the exit status. */
int kernel_list_run(const struct options *o, const char *what);
