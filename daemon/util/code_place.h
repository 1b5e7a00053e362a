/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A place in a program's code: what is known of it where no file can be opened. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct code_place {
	const char *path; /* that was mapped there; "": none */
	const void *build_id;
	size_t build_id_len; /* 0: not known */
	uint64_t offset;     /* in that file */
	uint64_t address;    /* in the process */
	int32_t pid;	     /* 0: not known */
};
