/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "filter/filter.h"

int filter_new(struct filter **ret _unused_, const char *const *texts _unused_,
	       size_t count _unused_, struct error *err)
{
	return error_set(err, -EOPNOTSUPP, "--filter: this program is built without libtraceevent");
}

struct filter *filter_free(struct filter *f _unused_)
{
	return NULL;
}

const struct event_filter *filter_event_filter(const struct filter *f _unused_)
{
	return NULL;
}
