/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/moment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/parse.h"

#define MARK_PREFIX "mark:"
/* The text's times have six digits, and are rounded. */
#define TEXT_DIGITS 6
#define ROUNDING 500

static bool moment_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int moment_refuse(const char *text, struct error *err)
{
	error_set(err, -EINVAL, "'%s' is no time in a recording", text);
	return error_hint(err, "give a time as the text shows it (12.345678), +1.5s after the "
			       "begin, -500ms before the end, or a mark's name");
}

static int moment_parse_time(const char *text, struct moment *ret, struct error *err)
{
	uint64_t scale = NSEC_PER_SEC, nsec = 0;
	struct moment m = { .kind = MOMENT_AT };
	const char *point;
	char *end;

	errno = 0;
	m.count = strtoull(text, &end, 10);
	m.is_fraction = *end == '.';
	point = end;
	end += m.is_fraction;
	for (; m.is_fraction && moment_is_digit(*end); end++) {
		scale /= 10;
		nsec += scale * (uint64_t)(*end - '0');
	}
	if (errno || *end)
		return moment_refuse(text, err);
	if (__builtin_mul_overflow(m.count, NSEC_PER_SEC, &m.ns) ||
	    __builtin_add_overflow(m.ns, nsec, &m.ns))
		m.ns = UINT64_MAX;
	else if (end - point <= 1 + TEXT_DIGITS)
		m.ns -= MIN(m.ns, (uint64_t)ROUNDING);
	*ret = m;
	return 0;
}

int moment_parse(const char *text, struct moment *ret, struct error *err)
{
	struct moment m = { .kind = MOMENT_MARK, .mark = text };

	if (moment_is_digit(*text))
		return moment_parse_time(text, ret, err);
	if (*text == '+' || *text == '-') {
		m.kind = *text == '+' ? MOMENT_AFTER_BEGIN : MOMENT_BEFORE_END;
		if (!text[1] || parse_duration(text + 1, &m.ns, NULL) < 0)
			return moment_refuse(text, err);
	} else if (!strncmp(text, MARK_PREFIX, strlen(MARK_PREFIX))) {
		m.mark += strlen(MARK_PREFIX);
	}
	if (m.kind == MOMENT_MARK && !*m.mark)
		return moment_refuse(text, err);
	*ret = m;
	return 0;
}
