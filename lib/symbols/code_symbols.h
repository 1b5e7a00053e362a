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

/*
 * folder: searched first, or NULL. Files: FOLDER/PATH, FOLDER/.build-id/xx/..., FOLDER/NAME, and
 * FOLDER/perf-PID.map. Borrowed.
 */
int code_symbols_new(struct code_symbols **ret, const char *folder);
struct code_symbols *code_symbols_free(struct code_symbols *s);
DEFINE_CLEANUP_FUNC(struct code_symbols *, code_symbols_free);

/* Valid until the next call. NULL: unknown. */
const char *code_symbols_find(struct code_symbols *s, const struct code_place *place);
/* The number of files that changed since they were recorded. */
size_t code_symbols_changed(const struct code_symbols *s);
