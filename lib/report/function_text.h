/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of kernel functions in tables. */
#pragma once

#include "report/kind.h"

/*
 * Puts the name as the kernel prints it: "work [module]". An address without a symbol is a number,
 * hashed unless the report's options say raw. 0 is "?": unknown.
 */
void table_put_function(struct table *t, const struct report_env *env, uint64_t address,
			bool is_rest);
