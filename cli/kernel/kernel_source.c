/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kernel_source.h"

int kernel_source_open(struct kernel_source *ret, const struct options *o, struct error *err)
{
	_cleanup_error_ struct error refused = ERROR_INIT;
	struct kernel_source s = { 0 };
	int r = link_open(&s.link, o, LINK_OR_ROOT, &refused);

	if (r < 0 && (!link_no_daemon(r) || geteuid() != 0))
		return error_move(err, &refused);
	if (r < 0)
		r = tracefs_open(&s.tracefs, NULL, err);
	if (r == 0)
		*ret = s;
	return r;
}

void kernel_source_deinit(struct kernel_source *s)
{
	link_deinit(&s->link);
	tracefs_free(s->tracefs);
	*s = (struct kernel_source){ 0 };
}

int kernel_source_ask(struct kernel_source *s, Traced__Control__Request *request,
		      Traced__Control__Reply **ret, struct error *err)
{
	int r = link_call(&s->link, request, NULL, 0, ret, err);

	if (r < 0)
		return r;
	if ((*ret)->body_case != TRACED__CONTROL__REPLY__BODY_EVENTS)
		return error_set(err, -EPROTO, "unexpected reply from traced");
	return 0;
}
