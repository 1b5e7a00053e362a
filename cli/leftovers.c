/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "leftovers.h"

#include <string.h>

#include "base/vec.h"
#include "daemon/service/config.h"
#include "daemon/service/spool.h"

static void leftovers_add(void *userdata, const struct spool_leftover *found)
{
	struct leftovers *l = userdata;
	char *path = strdup(found->path);

	if (path && vec_reserve_exact(l->items, l->count, 1) == 0)
		l->items[l->count++] =
			(struct leftover){ .path = TAKE_PTR(path), .bytes = found->bytes };
	free(path);
}

int leftovers_find(struct leftovers *ret)
{
	_cleanup_config_ struct config config = { 0 };
	int r = config_load_usual(&config);

	*ret = (struct leftovers){ 0 };
	if (r < 0)
		return r;
	r = spool_find_leftovers(config.spool_dir, leftovers_add, ret);
	return r == -EACCES || r == -EPERM ? 0 : r;
}

void leftovers_deinit(struct leftovers *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i].path);
	free(l->items);
	*l = (struct leftovers){ 0 };
}
