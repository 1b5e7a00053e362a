/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An export request on its way from the client to the exporter. It crosses as one packed
 * message (Output of control.proto) that nobody takes apart before this converter: the daemon to
 * check it, the exporter to do it.
 */
#pragma once

#include "export/export.h"
#include "proto/control.pb-c.h"

/*
 * Fills in all of ret that output tells but its merges; ret borrows output's strings, and
 * *ret_watch. -EINVAL, with a hint: the format does not know such an option.
 */
int order_options(const Traced__Control__Output *output, struct export_options *ret,
		  struct export_watch *ret_watch, struct error *err);

/* A copy, to be freed by traced__control__output__free_unpacked. NULL: no memory. */
Traced__Control__Output *order_copy(const Traced__Control__Output *output);

/* A nameless file that holds the order: its descriptor, or -errno. */
int order_write(const Traced__Control__ExportOrder *order);
/* The order in such a file, to be freed; NULL: it is damaged, or there is no memory. */
Traced__Control__ExportOrder *order_read(int fd);
