/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What lies in tests/data. Every failure fails the test. */
#pragma once

#include "export/export.h"
#include "util/buf.h"

/* Appends what a compressed file holds. */
void fixture_read_gz(const char *path, struct buf *out);
/* A compressed capture as a whole file of options' format, which buf_string() ends. */
void fixture_export(const char *path, const struct export_options *options, struct buf *out);
