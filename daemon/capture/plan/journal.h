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
 * Two lines are no steps. They tell what the file's next "restore" line above them needs:
 * - "wrote FILE VALUE": the file reads as VALUE after our write. If it now reads otherwise,
 * somebody changed it, and it is not restored;
 * - "writes FILE": we write again, so its value is unknown until the next "wrote".
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
	const char *state_dir; /* borrowed; NULL: no journal */
	int full;	       /* -ENOSPC or -EDQUOT: it could not be written; 0: it could */
};
#define JOURNAL_INIT ((struct journal){ .dirfd = -EBADF, .fd = -EBADF })

/* name: the recording's main instance. */
int journal_create(struct journal *j, const char *state_dir, const char *name, struct error *err);
/* After a failure: says that the state directory is full. Returns j->full. */
int journal_explain_full(const struct journal *j, struct error *err);
int journal_instance(struct journal *j, const char *instance);
int journal_restore(struct journal *j, const char *file, const char *old);
/* Before and after a write of a file. */
int journal_writes(struct journal *j, const char *file);
/* Reads the value back. A file that cannot be read back is always restored. */
int journal_wrote(struct journal *j, const struct tracefs *fs, const char *file);
int journal_append(struct journal *j, const char *file, const char *line);
/* Deletes the file after everything was undone. */
void journal_drop(struct journal *j);
/* Closes the journal and keeps its file for a later capture_recover. */
void journal_close(struct journal *j);

/*
 * Undoes a journal's steps, last first. Steps already undone count as success. Returns the number
 * of steps undone now, or the first error after trying all. Appends to kept, if it is not NULL, a
 * line for each setting that stays because somebody changed it.
 */
int journal_undo(const struct tracefs *fs, char *text, size_t len, struct buf *kept);
