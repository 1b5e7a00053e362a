/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * HTTPS by the program curl: only an operator's tracectl needs it, and boards have tracectl, too.
 * config: curl's own configuration, with certificates and S3 keys; NULL: none.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/* -ENOENT: the answer is 404 or 403. -EFBIG: it has more than max bytes. Others: -errno. */
int curl_get(const char *config, const char *url, size_t max, struct buf *ret, struct error *err);
/* Sends the file from its beginning. */
int curl_put(const char *config, const char *url, int fd, struct error *err);
/*
 * Gets many files into folder, by a list for curl -K: "url" and "output" of each. A file that
 * fails, or has more than file_max bytes, is missing, and curl says why on standard error. 0: all
 * are there; 1: some are.
 */
int curl_get_all(const char *config, int list_fd, uint64_t file_max, int folder, struct error *err);
