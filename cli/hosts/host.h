/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The hosts that -H, --hosts and --label name, and the process that is the way to one. */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "cli.h"

#define HOSTS_MAX 64
#define HOST_LABEL_MAX 32

struct host_name {
	char *spec;  /* owned; as typed */
	char *label; /* owned; unique: letters, digits, '.', '_', '-' */
};

struct host_list {
	struct host_name items[HOSTS_MAX];
	size_t count;
};
/* True of exec:COMMAND. */
bool host_is_exec(const char *spec);
void host_list_deinit(struct host_list *l);
#define _cleanup_host_list_ _cleanup_(host_list_deinit)
/* Reads the options. 0 or -errno. */
int host_list_init(struct host_list *ret, const struct options *o, struct error *err);

struct host_process {
	pid_t pid;	  /* 0: none */
	int in, out, err; /* pipes: its standard input, output and error */
};
#define HOST_PROCESS_INIT ((struct host_process){ .in = -EBADF, .out = -EBADF, .err = -EBADF })
/* Runs argv, NULL-terminated, on the host. Ctrl-C does not end the way to it. */
int host_run(struct host_process *ret, const char *spec, char *const *argv, struct error *err);
/* Whether it has ended; host_wait() does not wait then. */
bool host_has_ended(const struct host_process *p);
/* Asks it to end; after a second it is killed. */
void host_end(struct host_process *p);
/* Waits for its end. Returns its status as a shell has it. */
int host_wait(struct host_process *p);
