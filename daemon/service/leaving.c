/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/leaving.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "daemon/service/loop.h"

#define BLOCK_BYTES 512 /* of st_blocks */

struct leaver {
	LIST_ENTRY(leaver) list;
	struct loop_source *source;
	uid_t account;
	int end_fd, spool_fd; /* owned; spool_fd -EBADF: none */
};

struct leaving {
	struct loop *loop;
	LIST_HEAD(, leaver) leavers;
};

int leaving_new(struct leaving **ret, struct loop *loop)
{
	struct leaving *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->loop = loop;
	*ret = l;
	return 0;
}

static void leaver_free(struct leaver *one)
{
	LIST_REMOVE(one, list);
	loop_source_free(one->source);
	close_fd(one->end_fd);
	close_fd(one->spool_fd);
	free(one);
}

struct leaving *leaving_free(struct leaving *l)
{
	while (l && !LIST_EMPTY(&l->leavers))
		leaver_free(LIST_FIRST(&l->leavers));
	free(l);
	return NULL;
}

/* It may still say something, which nobody waits for. */
static void leaver_on_end(void *userdata, int fd, uint32_t revents _unused_)
{
	char said[4096];
	ssize_t n = read(fd, said, sizeof(said));

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		leaver_free(userdata);
}

void leaving_add(struct leaving *l, uid_t account, int end_fd, int spool_fd)
{
	struct leaver *one = end_fd >= 0 ? calloc(1, sizeof(*one)) : NULL;

	if (!one) {
		close_fd(end_fd);
		return;
	}
	LIST_INSERT_HEAD(&l->leavers, one, list);
	one->account = account;
	one->end_fd = end_fd;
	one->spool_fd = spool_fd >= 0 ? fcntl(spool_fd, F_DUPFD_CLOEXEC, 0) : -EBADF;
	if (loop_add_io(l->loop, &one->source, end_fd, EPOLLIN, leaver_on_end, one) < 0)
		leaver_free(one);
}

unsigned leaving_count(const struct leaving *l, uid_t account, unsigned *ret_users)
{
	const struct leaver *one;
	unsigned count = 0;

	*ret_users = 0;
	LIST_FOREACH(one, &l->leavers, list)
	{
		count += one->account == account;
		*ret_users += one->account != 0;
	}
	return count;
}

uint64_t leaving_bytes(const struct leaving *l, uid_t account)
{
	const struct leaver *one;
	uint64_t bytes = 0;
	struct stat st;

	LIST_FOREACH(one, &l->leavers, list)
	{
		if (one->account == account && one->spool_fd >= 0 &&
		    fstat(one->spool_fd, &st) == 0 && st.st_nlink == 0)
			bytes += (uint64_t)st.st_blocks * BLOCK_BYTES;
	}
	return bytes;
}
