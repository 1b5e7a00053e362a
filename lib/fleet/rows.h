/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A board's reports as rows: NDJSON, compressed by zstd. It has the same members as the JSON of
 * `tracectl report --json`, in lines:
 *
 *     {"format":"traced-report","version":1,"clock":"boot"}     first
 *     {"table":"sched",...,"columns":[...]}                     begins a report
 *     {"report":"sched","task":"door",...}                      a row
 *     {"end":"sched",...,"notes":[...]}                         ends the report
 *     {"first_ns":1,"span_ns":2,...}                            last
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* from: tracectl's JSON, from its position on. -EBADMSG: it is something else. */
int rows_pack(int from, int to, struct error *err);
/*
 * Writes the JSON of rows, which is as valid as they are. to: -EBADF: only checks them. from:
 * `size` bytes from its position on. ret: bytes of the JSON; a build without zstd does not set it.
 * -EBADMSG: it is no zstd, is cut, has other lines, or more than max bytes.
 */
int rows_unpack(int from, uint64_t size, int to, uint64_t max, uint64_t *ret, struct error *err);
