/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A place in a program's code, described without opening files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct code_place {
	const char *path; /* mapped file; "": none */
	const void *build_id;
	size_t build_id_len; /* 0: unknown */
	uint64_t offset;     /* in the file */
	uint64_t address;    /* in the process */
	int32_t pid;	     /* 0: unknown */
};

/*
 * True if no file holds the code: the program made it, in memory that may have a name, or the
 * kernel provides it ("[vdso]"). Its addresses have no meaning in another process.
 */
static inline bool code_path_is_made(const char *path)
{
	return !*path || *path == '[' || !strncmp(path, "//", 2) || !strncmp(path, "/memfd:", 7) ||
	       !strncmp(path, "/dev/zero", 9);
}

/* A caller that may open programs' files provides this. The exporter opens none. */
struct export_symbols {
	/* The function's name, valid until the next call. NULL: unknown. */
	const char *(*find)(void *userdata, const struct code_place *place);
	void *userdata;
};
