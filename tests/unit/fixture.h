/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files of tests/data. Every failure fails the test. */
#pragma once

#include "base/buf.h"
#include "export/export.h"
#include "print/event_table.h"

/* Appends a file's content, compressed or plain. */
void fixture_read_gz(const char *path, struct buf *out);
/*
 * Calls it for each event of a kernel. formats.txt.gz has a line "## SYSTEM" and each event's
 * format file.
 */
typedef void (*fixture_format_t)(void *userdata, const char *system, const char *text, size_t len);
void fixture_each_format(const char *kernel, fixture_format_t each, void *userdata);
/* Exports a compressed capture to options' format and returns the whole file, terminated. */
void fixture_export(const char *path, const struct export_options *options, struct buf *out);
/* True if the text of ev depends on a value that user space cannot know. */
bool fixture_prints_unknown(const struct event *ev);
