/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of functions in programs, for a caller that may open their files: never the daemon or its
 * exporter. A recording or profile names the files, so only regular files are opened, and a file
 * that differs from the recorded one is not used.
 */
#pragma once

#include "base/cleanup.h"
#include "base/code_place.h"

struct code_symbols;

enum code_file_kind {
	CODE_FILE_ELF,
	CODE_FILE_MAP, /* perf-PID.map, by root or this user */
};

/* For a process that can't open files. Returns a descriptor, or -errno. */
struct code_opener {
	int (*open)(void *userdata, const char *path, enum code_file_kind kind);
	void *userdata;
};

/*
 * Opens a regular file: the path is a recording's. For a map checks the owner too.
 */
int code_file_open(const char *path, enum code_file_kind kind);

/*
 * folder: searched first, or NULL. Files: FOLDER/PATH, FOLDER/.build-id/xx/..., FOLDER/NAME, and
 * FOLDER/perf-PID.map. Borrowed. opener: borrowed; NULL: code_file_open().
 */
int code_symbols_new(struct code_symbols **ret, const char *folder,
		     const struct code_opener *opener);
struct code_symbols *code_symbols_free(struct code_symbols *s);
DEFINE_CLEANUP_FUNC(struct code_symbols *, code_symbols_free);

/* Valid until the next call. NULL: unknown. */
const char *code_symbols_find(struct code_symbols *s, const struct code_place *place);
/* The number of files that changed since they were recorded. */
size_t code_symbols_changed(const struct code_symbols *s);
