/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A stream through the whole exporter, into memory. */
#pragma once

#include "base/buf.h"
#include "export/export.h"

struct exported {
	struct export_options options; /* the caller's */
	struct export_result result;
	struct error err;
	struct buf file; /* the output, terminated */
	int code;	 /* of export_stream() */
};

void exported_deinit(struct exported *e);
#define _cleanup_exported_ _cleanup_(exported_deinit)

/* May fail, as e->code then says. */
void try_export(struct exported *e, int stream_fd);
/* Fails the test if it fails. */
void export_whole(struct exported *e, int stream_fd);

/* The lines after the comments at the head of a text. */
const char *text_body(const char *text);
