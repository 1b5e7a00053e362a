/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A command that the client forked and holds. The daemon lets it go and notices its end, so that
 * the client sleeps meanwhile: what it does would be in the recording.
 */
#pragma once

#include "base/closer.h"
#include "base/error.h"
#include "daemon/service/loop.h"

#define COMMAND_FDS 2U

struct command {
	int go_fd, end_fd; /* owned; -EBADF: no command */
	struct loop_source *end;
};
#define COMMAND_INIT ((struct command){ .go_fd = -EBADF, .end_fd = -EBADF })

/*
 * Takes the two descriptors that came with a Start; those become -EBADF. ended is called, and again
 * until command_forget(), when the command has ended. -EINVAL, -EBADF: they are of another kind.
 */
int command_take(struct command *c, uid_t uid, int *fds, size_t fd_count, struct loop *loop,
		 loop_io_t ended, void *userdata, struct error *err);
/* Tracing is on. */
void command_release(const struct command *c);
void command_forget(struct command *c, struct closer *closer, uid_t account);
