/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Adds words to the kernel's command line, in the files of the boot loader. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/*
 * Each file has its own part of the words: GRUB's drop-in, and /etc/kernel/cmdline, which
 * systemd-boot's entries are made from. root: prefix of all paths; "" for the machine's own.
 */

/*
 * Writes for each boot loader that is there, and appends what to run next. Returns 1 if it wrote
 * something, 0 if next says what to change by hand. -ENOENT: there is no boot loader.
 */
int boot_loader_add(const char *root, const char *words, struct buf *next, struct error *err);
/* Takes our words away, and appends what to run next; nothing if there were none. */
int boot_loader_remove(const char *root, struct buf *next, struct error *err);
/* Appends instructions for all boot loaders. */
void boot_loader_explain(const char *words, struct buf *out);

/* Replaces a configuration file. */
int boot_loader_replace(const char *path, const char *text, struct error *err);
/* Removes the boot recorder's words from a command line, in place. True: there were some. */
bool boot_loader_strip(char *line);
