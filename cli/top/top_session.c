/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "top_session.h"

#include <errno.h>
#include <string.h>

#include "base/meminfo.h"
#include "formats/formats.h"
#include "start_request.h"
#include "top_keep.h"

static void top_session_fill_output(Traced__Control__Output *ret)
{
	*ret = (Traced__Control__Output)TRACED__CONTROL__OUTPUT__INIT;
	ret->format = (char *)"traced";
	ret->stream = true;
}

/* How many bytes the recorder may be ahead of the decoder. */
#define BACKLOG_BYTES (UINT64_C(192) << 20)

/* They are memory: a small machine has a quarter of what is free for them. */
static uint64_t top_session_backlog(void)
{
	uint64_t available = meminfo_available("/proc");

	return available ? MIN(BACKLOG_BYTES, available / 4) : BACKLOG_BYTES;
}

static int top_session_send_start(struct top_session *s, const struct options *o, int file,
				  Traced__Control__Reply **ret, struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	_cleanup_start_request_ struct start_request start = { 0 };
	Traced__Control__Output output;
	int r = start_request_init(&start, o, 0, err);

	if (r < 0)
		return r;
	start.message.stream = true;
	if (s->in_file) {
		start.message.client_file_max = TOP_KEEP_BYTES + top_session_backlog();
	} else {
		top_session_fill_output(&output);
		start.message.output = &output;
	}
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_START;
	request.start = &start.message;
	r = link_call(&s->link, &request, &file, s->in_file, ret, err);
	if (r == 0 && (*ret)->body_case != TRACED__CONTROL__REPLY__BODY_SESSION)
		return error_set(err, -EPROTO, "unexpected reply from traced");
	if (r == 0 && s->in_file && !(*ret)->session->in_client_file)
		return error_set(err, -EPROTO, "traced is of an older version than tracectl");
	return r;
}

static int top_session_send(struct top_session *s, Traced__Control__Request *request,
			    uint64_t *ret_id, struct error *err)
{
	int64_t id = control_client_send(s->link.client, request, NULL, 0, err);

	if (id < 0)
		return link_explain(&s->link, (int)id, err);
	*ret_id = (uint64_t)id;
	return 0;
}

static int top_session_attach(struct top_session *s, int stream, struct error *err)
{
	Traced__Control__Output output;

	if (s->in_file)
		return link_attach(&s->link, s->name, NULL, -EBADF, &s->attach_id, err);
	top_session_fill_output(&output);
	output.from_now = s->watched;
	return link_attach(&s->link, s->name, &output, stream, &s->attach_id, err);
}

int top_session_start(struct top_session *ret, const struct options *o, int stream, int file,
		      struct error *err)
{
	_cleanup_reply_ Traced__Control__Reply *started = NULL;
	int r;

	*ret = (struct top_session){ 0 };
	/* With a private daemon, it costs half as much. */
	r = link_open(&ret->link, o, LINK_PRIVATE_FIRST, err);
	/* Another daemon may be of another version, or have its own limits. */
	ret->in_file = ret->link.unspooled = r == 0 && ret->link.daemon > 0;
	if (r == 0)
		r = top_session_send_start(ret, o, file, &started, err);
	if (r < 0)
		return r;
	ret->name = strdup(started->session->name);
	if (!ret->name)
		return error_errno(err, -ENOMEM, "session");
	for (size_t i = 0; i < started->session->n_warnings; i++)
		cli_pass_on(started->session->warnings[i]);
	return top_session_attach(ret, stream, err);
}

int top_session_watch(struct top_session *ret, const struct options *o, int stream,
		      struct error *err)
{
	int r;

	*ret = (struct top_session){ .watched = true };
	r = link_open(&ret->link, o, LINK_LISTENING, err);
	if (r == 0)
		r = link_session(&ret->link, o->session, &ret->name, err);
	return r < 0 ? r : top_session_attach(ret, stream, err);
}

/* Discards the recording: nobody wants what comes now. */
static void top_session_cancel(struct top_session *s)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Cancel cancel = TRACED__CONTROL__CANCEL__INIT;
	uint64_t id;

	cancel.session = s->name;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_CANCEL;
	request.cancel = &cancel;
	top_session_send(s, &request, &id, NULL);
}

void top_session_deinit(struct top_session *s)
{
	if (s->name && !s->finished && !s->watched)
		top_session_cancel(s);
	link_deinit(&s->link);
	free(s->name);
	*s = (struct top_session){ 0 };
}

int top_session_fd(const struct top_session *s)
{
	return control_client_fd(s->link.client);
}

int top_session_ask(struct top_session *s, struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__StatusQuery query = TRACED__CONTROL__STATUS_QUERY__INIT;

	if (s->status_id || s->stopping || s->finished)
		return 0;
	query.session = s->name;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_STATUS;
	request.status = &query;
	return top_session_send(s, &request, &s->status_id, err);
}

int top_session_stop(struct top_session *s, struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Stop stop = TRACED__CONTROL__STOP__INIT;
	uint64_t id;

	if (s->stopping || s->finished)
		return 0;
	s->stopping = true;
	if (s->watched) {
		s->finished = true;
		return 0;
	}
	stop.session = s->name;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_STOP;
	request.stop = &stop;
	return top_session_send(s, &request, &id, err);
}

void top_session_leave(struct top_session *s)
{
	link_deinit(&s->link);
	s->left = s->finished = true;
}

static int top_session_take(struct top_session *s, const Traced__Control__Reply *reply,
			    struct error *err)
{
	if (reply->id == s->attach_id) {
		s->finished = true;
		/* The output's reader is the decoder: how that ended says why. */
		if (!reply->error || reply->error->code == EPIPE)
			return 0;
		return control_error(reply->error, err);
	}
	if (reply->id != s->status_id)
		return 0;
	s->status_id = 0;
	if (reply->body_case == TRACED__CONTROL__REPLY__BODY_STATUS && reply->status->n_sessions) {
		const Traced__Control__Session *session = reply->status->sessions[0];

		s->cpu_ns = session->cpu_time_ns + session->export_cpu_ns;
	}
	return 0;
}

int top_session_receive(struct top_session *s, struct error *err)
{
	while (!s->finished) {
		_cleanup_reply_ Traced__Control__Reply *reply = NULL;
		int r = control_client_receive(s->link.client, 0, &reply, err);

		if (r < 0)
			return link_explain(&s->link, r, err);
		if (r == 0)
			return 0;
		r = top_session_take(s, reply, err);
		if (r < 0)
			return r;
	}
	return 0;
}
