/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names of functions of programs, for whoever may open their files: never the daemon, nor its
 * exporter. What names the files comes from a recording or a profile, so that only regular files
 * are opened, and one that is known to be another than the recorded one is not used.
 */
#pragma once

#include "base/cleanup.h"
#include "base/code_place.h"

struct code_symbols;

/*
 * folder: NULL, or where files are looked for first: as FOLDER/PATH, as
 * FOLDER/.build-id/xx/..., by their last name; and FOLDER/perf-PID.map. Borrowed.
 */
int code_symbols_new(struct code_symbols **ret, const char *folder);
struct code_symbols *code_symbols_free(struct code_symbols *s);
DEFINE_CLEANUP_FUNC(struct code_symbols *, code_symbols_free);

/* Valid until the next call. NULL: not known. */
const char *code_symbols_find(struct code_symbols *s, const struct code_place *place);
/* Files that are no longer those that were recorded. */
size_t code_symbols_changed(const struct code_symbols *s);
