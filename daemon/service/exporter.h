/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes for work that the daemon's loop must not do: decoding, and long waits. */
#pragma once

#include <stdbool.h>

#include "daemon/service/child.h"
#include "daemon/service/merging.h"
#include "formats/formats.h"

struct exporter_request {
	int stream_fd, out_fd; /* borrowed */
	int follow_fd;	       /* borrowed from follow_new; -EBADF: the stream is complete */
	const Traced__Control__Output *output; /* borrowed */
	bool tgid;			       /* the session asks for tgids */
	const struct capture_part *part;       /* bytes 0: all of it */
	uint64_t skip;			       /* not 0: as ExportOrder.skip_bytes */
	const struct merging *merging;	       /* borrowed */
	bool quiet;			       /* another recording is running: use low priority */
	const char *service;		       /* as in struct child_spec */
};

/* Decodes a stream without any privilege. */
int exporter_spawn(struct child **ret, struct loop *loop, const struct exporter_request *request,
		   child_done_t done, void *userdata, struct error *err);

/*
 * Drains an existing buffer (instance "": the top-level one) into stream_fd, with the daemon's own
 * rights. A separate process: a large buffer takes seconds, during which the daemon's own
 * recordings must continue.
 */
int extractor_spawn(struct child **ret, struct loop *loop, const char *tracefs_root,
		    const char *state_dir, const char *instance, int stream_fd, child_done_t done,
		    void *userdata, struct error *err);

/*
 * Entry points in these processes; arguments follow the internal option. They return an exit
 * status.
 */
#define EXPORTER_OPTION "--run-exporter"
#define EXPORTER_SERVICE_OPTION "--serve-exports"
#define EXTRACTOR_OPTION "--run-extractor"
int exporter_main(void);
int exporter_service_main(void);
int extractor_main(int argc, char **argv);
