/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Builds a stream's HEADER: facts about the machine and the request. */
#pragma once

#include "daemon/capture/capture.h"
#include "daemon/capture/rings/cpu_reader.h"

struct metadata {
	const struct capture_env *env;
	const struct capture_request *request; /* NULL: an extraction */
	const char *instance;		       /* replaces the request's name if there is none */
	int dir;			       /* the instance's directory */
	const struct subbuf_layout *layout;
	uint32_t tasks_subbuf_size; /* bytes; 0: no tasks' ring */
	unsigned cpus, cpus_online;
	uint8_t uuid[16];
};

/* Appends the instance's events/header_page and parses its sub-buffer layout. */
int metadata_read_layout(const struct tracefs *fs, int dir, struct buf *text,
			 struct subbuf_layout *ret, struct error *err);
/* Appends the packed Header message. */
int metadata_pack_header(const struct metadata *m, struct buf *out, struct error *err);
