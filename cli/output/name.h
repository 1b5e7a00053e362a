/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The life of an output's name, from open to commit: name.c. Devices, pipes and inherited
 * descriptors (standard output, /dev/fd/N) are written in place instead.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"

#define PART ".part"

enum output_kind {
	OUTPUT_FILE,	  /* without a name, or hidden, until it is whole */
	OUTPUT_PART,	  /* visible as NAME.part: can be read meanwhile, survives its writers */
	OUTPUT_DIRECTORY, /* hidden until it is whole */
};

struct output_name {
	enum output_kind kind;
	int fd; /* for writing and, unless in place, reading; a directory's is opened when used */
	char *path; /* for messages */
	int dir_fd;
	char *base; /* final name in dir_fd; NULL: the output has it, or is written in place */
	char *temp; /* current name in dir_fd, ours to remove; NULL: none */
	bool fresh; /* the final name must not exist: -EEXIST; it may be changed */
};
#define OUTPUT_NAME_INIT ((struct output_name){ .fd = -EBADF, .dir_fd = -EBADF })

/*
 * Creates the output; nothing at path changes before output_name_commit(). path "-": standard
 * output. -EEXIST: the part is another recording's, or the directory's name is taken.
 */
int output_name_open(struct output_name *ret, const char *path, enum output_kind kind,
		     struct error *err);
/* Descriptor of the hidden directory, opened on the first call; or -errno. */
int output_name_folder(struct output_name *n);
/* Tries a rename without replacement: gives a part a hidden name. */
int output_name_rehearse(struct output_name *n, struct error *err);
/* Changes the final name, within the same folder. */
int output_name_change(struct output_name *n, const char *path, struct error *err);
/* Syncs and renames it, or keeps it under another name, given in the hint. */
int output_name_commit(struct output_name *n, struct error *err);
/* Leaves a part or a directory to others, under its current name. False: a file; it goes. */
bool output_name_leave(struct output_name *n);
/* Removes an uncommitted output. */
void output_name_deinit(struct output_name *n);
#define _cleanup_output_name_ _cleanup_(output_name_deinit)

/* Explains a failed write. Returns r; 0: no error. */
int output_name_explain(const struct output_name *n, int r, struct error *err);

/*
 * Renames within a folder; -EEXIST if `to` exists. On filesystems without such a call, `to` briefly
 * exists as an empty file.
 */
int output_rename_fresh(int dir_fd, const char *from, const char *to);

/* The signals that end tracectl: blocked until SIG_SETMASK with old; or ignored from now on. */
void output_signals_block(sigset_t *old);
/* Whether one of them came since they were blocked. */
bool output_signals_pending(void);
void output_signals_ignore(void);
