/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A condition, as people type it. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "report/watch_condition.h"

static bool has_control(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < 0x20 && *text != '\t') || *text == 0x7f)
			return true;
	return false;
}

/* An accepted condition is complete, and nothing else is set. */
static void check_accepted(const struct watch_condition *c)
{
	const bool is_time = c->kind != WATCH_EVENT && c->kind != WATCH_LOST;

	if (is_time && !c->above)
		abort();
	if ((c->kind == WATCH_EVENT) != (c->system && c->event) ||
	    (c->kind != WATCH_EVENT && c->filter) || (c->kind == WATCH_MARK && !c->name))
		abort();
	if (c->cpu < -1 || c->tid < 0 || (c->filter && !*c->filter) || (c->name && !*c->name) ||
	    (c->comm && !*c->comm))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_free_ char *text = NULL;
	struct watch_condition c;
	int r;

	if (size > 2 * WATCH_TEXT_MAX)
		return 0;
	/* A block of its own, so that a sanitizer sees reads beyond it. */
	text = strndup((const char *)data, size);
	if (!text)
		return 0;
	r = watch_condition_parse(text, &c, &err);
	if (r == 0) {
		check_accepted(&c);
		watch_condition_deinit(&c);
	} else if (r != -EINVAL || !err.message ||
		   (!strchr(err.message, '^') && !has_control(text) &&
		    strlen(text) <= WATCH_TEXT_MAX)) {
		abort();
	}
	return 0;
}
