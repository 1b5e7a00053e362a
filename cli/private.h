/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recordings of private daemons (`tracectl record` without a daemon), which nobody can ask. Such a
 * daemon is root's. Its journal names the recording, and lies where only root can write.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct private_recording {
	char *instance; /* in tracefs: "traced-PID-NAME" */
	pid_t daemon;	/* that PID */
	char *command;	/* the command line that started the daemon; may be empty */
};

struct private_recordings {
	struct private_recording *items; /* owned */
	size_t count;
};

/* Name of the recording: NAME of its instance. */
const char *private_recording_name(const struct private_recording *p);
/*
 * Finds the journals in state_dir whose owner is a private daemon that lives. proc: "/proc". A
 * folder that is missing or that this user may not read has none. 0 or -errno.
 */
int private_recordings_find(const char *state_dir, const char *proc,
			    struct private_recordings *ret);
/* The same in the configured folder. */
int private_recordings_find_usual(struct private_recordings *ret);
/*
 * Writes a mark into each of these recordings, or the one of that name. Needs root. -EPERM: others
 * than root can write to the folder of the journals, so they can name anything. Returns how many
 * have it; without one an error, or 0 if there was none.
 */
int private_recordings_mark(const char *name, const char *text, struct error *err);
void private_recordings_deinit(struct private_recordings *l);
