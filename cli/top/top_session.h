/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recording of `tracectl top`: a session whose capture stream goes into a pipe or a file. It is
 * top's own, or one that was running before and does not notice.
 */
#pragma once

#include "link.h"

struct top_session {
	struct link link;
	char *name;		       /* owned; NULL: not started */
	uint64_t attach_id, status_id; /* of requests; status_id 0: none is on its way */
	bool watched;		       /* not our own */
	bool in_file;		       /* our daemon writes the stream into our file */
	bool left;		       /* top_session_leave() */
	bool stopping, finished;
	uint64_t cpu_ns; /* of the recorder and its exporter, as last reported */
};

/*
 * Starts it as the options say, after warnings on stderr. A daemon that listens copies the stream
 * into `stream`. A private one writes it into `file`, see in_file: that saves an exporter, and
 * copies of all bytes. Both are borrowed.
 */
int top_session_start(struct top_session *ret, const struct options *o, int stream, int file,
		      struct error *err);
/* Follows the running session of o->session instead, from now on. */
int top_session_watch(struct top_session *ret, const struct options *o, int stream,
		      struct error *err);
/* Discards the recording, unless it has ended or is not our own. */
void top_session_deinit(struct top_session *s);

/* The descriptor to poll. */
int top_session_fd(const struct top_session *s);
/* Takes all replies that have arrived. */
int top_session_receive(struct top_session *s, struct error *err);
/* Asks for its costs, unless that was asked already. */
int top_session_ask(struct top_session *s, struct error *err);
/* One that is not our own goes on without us. Its stream still comes to its end. */
void top_session_leave(struct top_session *s);
/* Ends it, and its stream still comes to its end; one that is not our own goes on. */
int top_session_stop(struct top_session *s, struct error *err);
