/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records undo steps in a file before each step is done. One file per recording in the state
 * directory, locked (open file description lock) while its owner lives. If the lock is free, the
 * owner has crashed.
 *
 * One step per line:
 * - "instance NAME": remove the instance;
 * - "restore FILE VALUE": write VALUE, replacing the file's content;
 * - "append FILE VALUE": write VALUE without emptying the file first.
 * FILE is relative to tracefs; in VALUE backslash and newline are \\ and \n. A last line without
 * newline was cut by a crash: its step never began.
 *
 * The journal must survive its writer, not the kernel: a reboot undoes everything anyway. So
 * nothing here waits for a disk.
 */
#pragma once

#include "daemon/capture/tracefs/tracefs.h"

#define JOURNAL_SUFFIX ".journal"

struct journal {
	int dirfd; /* the state directory; owned */
	int fd;	   /* -EBADF: no journal */
	char *name;
};
#define JOURNAL_INIT ((struct journal){ .dirfd = -EBADF, .fd = -EBADF })

/* name: the recording's main instance. */
int journal_create(struct journal *j, const char *state_dir, const char *name, struct error *err);
int journal_instance(struct journal *j, const char *instance);
int journal_restore(struct journal *j, const char *file, const char *old);
int journal_append(struct journal *j, const char *file, const char *line);
/* Deletes the file after everything was undone. */
void journal_drop(struct journal *j);
/* Closes the journal and keeps its file for a later capture_recover. */
void journal_close(struct journal *j);

/*
 * Undoes a journal's steps, last first. Steps already undone count as success. Returns the number
 * of steps undone now, or the first error after trying all.
 */
int journal_undo(const struct tracefs *fs, char *text, size_t len);
