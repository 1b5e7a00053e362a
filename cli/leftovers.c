/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "leftovers.h"

#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "daemon/service/config.h"
#include "daemon/service/spool.h"
#include "link.h"

static void leftovers_add(void *userdata, const struct spool_leftover *found)
{
	struct leftovers *l = userdata;
	char *path = strdup(found->path);

	if (path && vec_reserve_exact(l->items, l->count, 1) == 0)
		l->items[l->count++] = (struct leftover){ .path = TAKE_PTR(path),
							  .bytes = found->bytes,
							  .ended = found->ended };
	free(path);
}

/* Without a daemon there are none. */
static void leftovers_ask(struct leftovers *l, const struct options *o)
{
	_cleanup_link_ struct link link = { 0 };
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;

	if (link_open(&link, o, LINK_LISTENING, NULL) < 0 || link_kept(&link, &reply, NULL) < 0)
		return;
	for (size_t i = 0; i < reply->status->n_kept; i++) {
		const Traced__Control__Kept *kept = reply->status->kept[i];

		leftovers_add(l, &(struct spool_leftover){ .path = kept->path,
							   .bytes = kept->bytes,
							   .ended = (time_t)kept->ended_s });
	}
}

int leftovers_find(struct leftovers *ret, const struct options *o)
{
	_cleanup_config_ struct config config = { 0 };
	int r;

	*ret = (struct leftovers){ 0 };
	if (geteuid() != 0) {
		leftovers_ask(ret, o);
		return 0;
	}
	r = config_load_usual(&config);
	return r < 0 ? r : spool_find_leftovers(config.spool_dir, leftovers_add, ret);
}

void leftover_put_remedy(const struct leftover *l, const char *output, struct buf *out)
{
	if (geteuid() == 0)
		buf_printf(out, "tracectl convert %s %s, or delete it", l->path, output);
	else
		buf_printf(out,
			   "root can write it out: tracectl convert %s %s; you can discard it: "
			   "tracectl cancel %s",
			   l->path, output, l->path);
}

void leftovers_deinit(struct leftovers *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i].path);
	free(l->items);
	*l = (struct leftovers){ 0 };
}
