/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/function_text.h"

#include "print/printer.h"

void table_put_function(struct table *t, const struct report_env *env, uint64_t address,
			bool is_rest)
{
	char text[SYMBOL_TEXT_MAX];
	const char *end;

	if (is_rest || !address) {
		table_put_text(t, is_rest ? TEXT("(others)") : TEXT("?"));
		return;
	}
	end = print_symbol(env->printer, text, address, 's');
	table_put_text(t, (struct text){ text, (uint32_t)(end - text) });
}
