/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A stream as JSON, parsed. Every failure fails the test; include it behind cmocka.h. */
#pragma once

#include <jansson.h>
#include <string.h>

#include "base/io.h"
#include "formats/formats.h"
#include "make_stream.h"
#include "memory_file.h"

struct converted {
	struct export_result result;
	json_t *json;
};

static inline void converted_deinit(struct converted *c)
{
	export_result_deinit(&c->result);
	json_decref(c->json);
}
#define _cleanup_converted_ _cleanup_(converted_deinit)

static inline void convert(struct converted *ret, struct maker *m,
			   const struct export_options *options)
{
	_cleanup_close_ int out = memory_file("", 0);
	struct export_options o = *options;
	struct error err = ERROR_INIT;

	*ret = (struct converted){ 0 };
	o.format = "json";
	if (export_stream(m->fd, out, &o, &ret->result, &err) < 0)
		fail_msg("%s", err.message);
	lseek(out, 0, SEEK_SET);
	ret->json = json_loadfd(out, 0, NULL);
	assert_non_null(ret->json);
}

static inline json_t *other_data(const struct converted *c, const char *key)
{
	return json_object_get(json_object_get(c->json, "otherData"), key);
}

#define assert_number(object, key, expected)                                                       \
	assert_int_equal(json_integer_value(json_object_get(object, key)), (long long)(expected))
