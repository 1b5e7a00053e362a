/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The result of an export as an ExportResult message, from the process that decodes. */
#pragma once

#include "export/export.h"
#include "proto/control.pb-c.h"

/* Write one message to fd; return an exit status for the process. */
int export_result_write(int fd, const Traced__Control__ExportResult *message);
int export_result_send(int fd, const struct export_result *result);
int export_result_send_error(int fd, const struct error *err);

/* Takes a process's error, which may be an attacker's. Returns its -errno. */
int export_result_take_error(const Traced__Control__Error *from, struct error *err);
