/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For root, decoding runs in a process of its own, in the sandbox of the daemon's exporter
 * (daemon/service/sandbox.h): another user, no capabilities, no paths, few system calls. It has the
 * descriptors that are open when it begins. It asks this process for programs' files, whose names
 * the input has; this process decodes nothing. For other users all is one process.
 */
#pragma once

#include "export/export.h"
#include "symbols/code_symbols.h"

/* Whether confined_run() starts a process. */
bool confined_wanted(void);
/* Whether this is that process. */
bool confined_here(void);

/*
 * Runs work(userdata, ret, err) and returns its result. -ECHILD: the process was killed. The
 * process has a copy of everything; changes in it are lost, except for *ret.
 */
int confined_run(int (*work)(void *userdata, struct export_result *ret, struct error *err),
		 void *userdata, struct export_result *ret, struct error *err);
/* Kills the process, if one runs. Signal-safe. */
void confined_kill(void);

/* For code_symbols_new(); NULL if there is no process. */
const struct code_opener *confined_opener(void);
