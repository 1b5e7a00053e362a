/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The processes that do what the daemon's loop must not: decode, and wait for long. */
#pragma once

#include <stdbool.h>

#include "daemon/service/child.h"
#include "daemon/service/merging.h"
#include "formats/formats.h"

struct exporter_request {
	int stream_fd, out_fd; /* borrowed */
	int follow_fd;	       /* borrowed: of follow_new, or -EBADF: the stream is whole */
	const Traced__Control__Output *output; /* borrowed */
	bool tgid;			       /* wanted by the session, too */
	const struct merging *merging;	       /* borrowed */
	bool quiet;			       /* something else records: be nice to it */
	const char *service;		       /* as in struct child_spec */
};

/* Decodes a stream, without any privilege. */
int exporter_spawn(struct child **ret, struct loop *loop, const struct exporter_request *request,
		   child_done_t done, void *userdata, struct error *err);

/*
 * Drains an existing buffer (instance "": the top-level one) into stream_fd,
 * with the daemon's own rights: in a process of its own, as a large buffer
 * takes seconds in which the daemon's own recordings must go on.
 */
int extractor_spawn(struct child **ret, struct loop *loop, const char *tracefs_root,
		    const char *state_dir, const char *instance, int stream_fd, child_done_t done,
		    void *userdata, struct error *err);

/* What main does in them; arguments after the internal option. Return an exit status. */
#define EXPORTER_OPTION "--run-exporter"
#define EXPORTER_SERVICE_OPTION "--serve-exports"
#define EXTRACTOR_OPTION "--run-extractor"
int exporter_main(void);
int exporter_service_main(void);
int extractor_main(int argc, char **argv);
