/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What has to be undone, in a file before it is done. One file per recording in
 * the state folder, locked (open file description lock) while its owner lives;
 * a journal whose lock can be had belongs to a crashed one.
 *
 * Text, one step a line: "instance NAME" (to be removed), "restore FILE VALUE"
 * and "append FILE VALUE" (to be written, replacing what is there or not; FILE relative to
 * tracefs; backslash, newline in VALUE as \\ and \n). A last line without its newline was
 * cut by a crash: its step never began.
 *
 * It outlives its writer, not the kernel: what would be undone ends with the kernel, so
 * nothing here waits for a disk.
 */
#pragma once

#include "daemon/capture/tracefs/tracefs.h"

#define JOURNAL_SUFFIX ".journal"

struct journal {
	int dirfd; /* the state folder; owned */
	int fd;	   /* -EBADF: none */
	char *name;
};
#define JOURNAL_INIT ((struct journal){ .dirfd = -EBADF, .fd = -EBADF })

/* name: the recording's main instance. */
int journal_create(struct journal *j, const char *state_dir, const char *name, struct error *err);
int journal_instance(struct journal *j, const char *instance);
int journal_restore(struct journal *j, const char *file, const char *old);
int journal_append(struct journal *j, const char *file, const char *line);
/* Everything is undone: the file goes. */
void journal_drop(struct journal *j);
/* Closes it and leaves the file for a later capture_recover. */
void journal_close(struct journal *j);

/*
 * Undoes a journal's steps, last first. Steps that are undone already count as
 * done. Returns the number of steps undone now, or the first error after
 * having tried all.
 */
int journal_undo(const struct tracefs *fs, char *text, size_t len);
