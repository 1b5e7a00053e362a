/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A stream as JSON, parsed. Every failure fails the test; include it behind cmocka.h. */
#pragma once

#include <jansson.h>
#include <string.h>

#include "exported.h"

struct converted {
	struct exported out;
	json_t *json;
};

static inline void converted_deinit(struct converted *c)
{
	exported_deinit(&c->out);
	json_decref(c->json);
}
#define _cleanup_converted_ _cleanup_(converted_deinit)

/* options: NULL for none. */
static inline void convert(struct converted *ret, int stream_fd,
			   const struct export_options *options)
{
	json_error_t why;

	*ret = (struct converted){ 0 };
	if (options)
		ret->out.options = *options;
	ret->out.options.format = "json";
	export_whole(&ret->out, stream_fd);
	ret->json = json_loadb(ret->out.file.data, ret->out.file.len, JSON_ALLOW_NUL, &why);
	if (!ret->json)
		fail_msg("%s at %d: %s", why.text, why.position, ret->out.file.data);
}

static inline json_t *other_data(const struct converted *c, const char *key)
{
	return json_object_get(json_object_get(c->json, "otherData"), key);
}

#define assert_number(object, key, expected)                                                       \
	assert_int_equal(json_integer_value(json_object_get(object, key)), (long long)(expected))
