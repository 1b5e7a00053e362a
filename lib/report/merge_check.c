/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether a report's description in a file is one that a table can have. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/visible.h"
#include "report/merge_form.h"

/* A histogram's has an event, up to three fields and a filter. */
#define NAME_LEN_MAX 600

/* Names are printed as they are. others: what they may have beside letters, digits and '-'. */
static bool merge_name_is_plain(const char *name, const char *others)
{
	size_t len = 0;

	while (isalnum((unsigned char)name[len]) || name[len] == '-' ||
	       (name[len] && strchr(others, name[len])))
		len++;
	return len && len <= NAME_LEN_MAX && !name[len];
}

/* A filter may have any characters, but none that control a terminal. */
static bool merge_title_is_plain(const char *name)
{
	_cleanup_buf_ struct buf visible = BUF_INIT;

	buf_visible(&visible, name, NAME_LEN_MAX);
	return *name && buf_string(&visible) && !strcmp(visible.data, name);
}

static const struct column *merge_find(const struct merge_description *d, const char *name)
{
	for (size_t i = 0; name && i < d->column_count; i++)
		if (!strcmp(d->columns[i].name, name))
			return &d->columns[i];
	return NULL;
}

/* Another column's values can be read as sums. */
static bool merge_is_sum(const struct merge_description *d, const char *name)
{
	const struct column *c = merge_find(d, name);

	return c && c->adds == ADDS_SUM;
}

static bool merge_is_value(const struct column *c)
{
	return c->kind == COLUMN_COUNT || c->kind == COLUMN_BYTES || c->kind == COLUMN_TIME;
}

static bool merge_is_part(const struct column *c)
{
	return c->kind == COLUMN_PERMILLE || c->kind == COLUMN_BAR;
}

static bool merge_column_is_valid(const struct merge_description *d, size_t i)
{
	const struct column *c = &d->columns[i], *of = merge_find(d, c->of);

	/* Histograms have the kernel's fields: "common_pid", "gfp_flags.hex". */
	if (!merge_name_is_plain(c->name, "_.") || merge_find(d, c->name) != c)
		return false;
	switch (c->adds) {
	case ADDS_KEY:
		return c->kind == COLUMN_TEXT || c->kind == COLUMN_NUMBER || merge_is_value(c);
	case ADDS_SUM:
	case ADDS_LARGEST:
	case ADDS_SMALLEST:
		return merge_is_value(c);
	case ADDS_HISTOGRAM:
		return c->kind == COLUMN_HISTOGRAM;
	case ADDS_AT:
		return c->kind == COLUMN_AT && of && of->kind == COLUMN_HISTOGRAM;
	case ADDS_SHARE:
		return merge_is_part(c) && merge_is_sum(d, c->of) && c->same <= i;
	case ADDS_SPAN_SHARE:
		return merge_is_part(c) && merge_is_sum(d, c->of);
	case ADDS_REMAINDER:
		return merge_is_part(c) && merge_is_sum(d, c->of) && merge_is_sum(d, c->over);
	case ADDS_PER_SECOND:
		return c->kind == COLUMN_COUNT && merge_is_sum(d, c->of);
	default:
		return false;
	}
}

/* Members of two columns must not have one name: "a-b" and "a b" can't be, "x" and "x" neither. */
int merge_check_description(const struct merge_description *d, struct error *err)
{
	/* "hist sched:sched_switch by next_comm, next_pid if next_prio < 100" */
	if (!d->name || !merge_title_is_plain(d->name) ||
	    (d->by && !merge_name_is_plain(d->by, "")))
		return error_set(err, -EBADMSG, "it has a report without a valid name");
	if (!d->column_count)
		return error_set(err, -EBADMSG, "its report %s has no columns", d->name);
	for (size_t i = 0; i < d->column_count; i++) {
		const struct column *c = &d->columns[i];

		if (c->adds == ADDS_NOT) {
			error_set(err, -EINVAL, "its report %s can't be merged", d->name);
			return error_hint(err,
					  "the values of its column %s can't be added up; "
					  "merge others",
					  merge_name_is_plain(c->name, "_.") ? c->name : "?");
		}
		if (!merge_column_is_valid(d, i))
			return error_set(err, -EBADMSG, "column %zu of its report %s is invalid",
					 i + 1, d->name);
	}
	return 0;
}
