/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A place in a program's code: what is known of it where no file can be opened. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct code_place {
	const char *path; /* that was mapped there; "": none */
	const void *build_id;
	size_t build_id_len; /* 0: not known */
	uint64_t offset;     /* in that file */
	uint64_t address;    /* in the process */
	int32_t pid;	     /* 0: not known */
};

/*
 * What no file has: code that a program made itself, in memory that may go by a name, or that the
 * kernel brings ("[vdso]"). Its addresses mean nothing in another process.
 */
static inline bool code_path_is_made(const char *path)
{
	return !*path || *path == '[' || !strncmp(path, "//", 2) || !strncmp(path, "/memfd:", 7) ||
	       !strncmp(path, "/dev/zero", 9);
}

/* Who can look into programs' files: the exporter opens none. */
struct export_symbols {
	/* The function's name, valid until the next call; NULL: not known. */
	const char *(*find)(void *userdata, const struct code_place *place);
	void *userdata;
};
