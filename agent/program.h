/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs that the agent runs: without a shell, and with an environment of their own. */
#pragma once

#include <sys/types.h>

struct agent_program {
	const char *const *argv, *const *environment; /* argv[0]: a path */
	int dirfd;				      /* its folder */
	int in, out;				      /* its standard input and output */
	int err;				      /* and errors; -EBADF: the agent's */
	pid_t parent;				      /* whose end sends it SIGTERM */
};

/* The child between fork and exec: it takes no lock. */
_Noreturn void agent_program_exec(const struct agent_program *program);
