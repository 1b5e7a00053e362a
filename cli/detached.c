/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "detached.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "destination.h"
#include "formats/formats.h"
#include "link.h"
#include "progress.h"
#include "trigger/trigger_files.h"

/* The recorder gives its last file its name once traced is done with it. */
#define NAMING_MS 5000
#define NAMING_STEP_MS 10

/* pattern: a name, or with a star for the numbers of several. */
static bool fetch_folder_has(const char *folder, const char *pattern)
{
	const struct dirent *entry;
	bool has = false;
	DIR *dir = opendir(folder);

	while (dir && !has && (entry = readdir(dir)))
		has = fnmatch(pattern, entry->d_name, 0) == 0;
	if (dir)
		closedir(dir);
	return has;
}

/* The place is any text that the recorder told: it is not looked at for other users. */
static void fetch_await_names(const Traced__Control__Session *session)
{
	_cleanup_free_ char *folder = strdup(session->place), *pattern = NULL;
	char *slash = folder ? strrchr(folder, '/') : NULL;

	if (!slash || session->uid != geteuid() || asprintf(&pattern, "%s.part", slash + 1) < 0)
		return;
	*slash = '\0';
	for (int ms = 0; fetch_folder_has(folder, pattern) && ms < NAMING_MS; ms += NAMING_STEP_MS)
		usleep(NAMING_STEP_MS * 1000);
}

/* Reports what the recorder's own files have. Returns the exit status. */
static int fetch_tell_files(const Traced__Control__Finished *finished, const struct options *o)
{
	const Traced__Control__Session *session = finished->session;
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_outcome_ struct outcome outcome = { 0 };

	if (finished->result->error) {
		control_error(finished->result->error, &err);
		return cli_fail(&err);
	}
	if (outcome_from_finished(&outcome, finished, &err) < 0)
		return cli_fail(&err);
	if (*session->place)
		fetch_await_names(session);
	outcome.path = *session->place ? session->place : session->name;
	return outcome_tell(&outcome, o);
}

/*
 * A session whose recorder writes it while it records: without -o it only ends. The reply comes
 * when the files are complete, but not if they are a pipe. Returns the exit status.
 */
static int fetch_end_only(struct link *link, Traced__Control__Request *request,
			  const struct options *o)
{
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;

	request->stop->output = NULL;
	if (link_call(link, request, NULL, 0, &reply, &err) < 0)
		return cli_fail(&err);
	if (reply->body_case == TRACED__CONTROL__REPLY__BODY_FINISHED && reply->finished->result &&
	    reply->finished->session)
		return fetch_tell_files(reply->finished, o);
	cli_line(stderr, "%s has ended: its 'record --stream' completes the file",
		 request->stop->session);
	return CLI_WHOLE;
}

/* True if the session's recorder writes files while it records: a Stop needs no output then. */
static bool fetch_has_files(struct link *link, char *session)
{
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;

	return link_status(link, session, &reply, NULL) == 0 && reply->status->n_sessions == 1 &&
	       *reply->status->sessions[0]->place;
}

/* Ends such a session; the caller's folder may be one where it can't write. False: none such. */
static bool fetch_end_files(const struct options *o, int *ret_status)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Stop stop = TRACED__CONTROL__STOP__INIT;
	_cleanup_link_ struct link link = { 0 };
	_cleanup_free_ char *session = NULL;

	if (link_open(&link, o, LINK_LISTENING, NULL) < 0 ||
	    link_session(&link, o->args ? o->args[0] : NULL, &session, NULL) < 0 ||
	    !fetch_has_files(&link, session))
		return false;
	stop.session = session;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_STOP;
	request.stop = &stop;
	*ret_status = fetch_end_only(&link, &request, o);
	return true;
}

/* Refuses a session for conditions (NAME-watch): it has no file, and without it none is met. */
static int fetch_refuse_watch(struct link *link, const char *session, struct error *err)
{
	_cleanup_reply_ Traced__Control__Reply *reply = NULL, *recorder = NULL;
	const size_t len = strlen(session), suffix = strlen(TRIGGERS_SUFFIX);
	_cleanup_free_ char *name = NULL;

	if (len <= suffix || link_status(link, session, &reply, NULL) < 0 ||
	    reply->status->n_sessions != 1 || !reply->status->sessions[0]->for_conditions)
		return 0;
	error_set(err, -EINVAL, "session \"%s\" is for conditions of triggers: it has no file",
		  session);
	name = strndup(session, len - suffix);
	if (!name || link_status(link, name, &recorder, NULL) < 0)
		return error_hint(err, "it ends with its 'tracectl wait'");
	return error_hint(err, "end the session that has the triggers: tracectl stop %s", name);
}

/*
 * The output without -o: "lab.json", or "lab-20261127T231501.123Z.json" of a snapshot, which never
 * replaces a file. So neither two sessions nor two snapshots replace each other's file. Root calls
 * other users' sessions UID/NAME: the file is UID-NAME.json.
 */
static char *fetch_default_output(const struct options *o, enum fetch_verb verb,
				  const char *session)
{
	_cleanup_buf_ struct buf name = BUF_INIT;

	for (const char *c = session; *c; c++)
		buf_putc(&name, *c == '/' ? '-' : *c);
	if (verb == FETCH_SNAPSHOT) {
		buf_putc(&name, '-');
		snapshot_put_time(&name, now_ns(CLOCK_REALTIME));
	}
	buf_puts(&name, output_ending(o, OUTPUT_ENDING));
	return buf_string(&name) ? TAKE_PTR(name.data) : NULL;
}

static int fetch_open_link(struct link *link, const struct options *o, enum fetch_verb verb,
			   char **ret_session, struct error *err)
{
	int r = link_open(link, o, verb == FETCH_EXTRACT ? LINK_PRIVATE_TOO : LINK_LISTENING, err);

	if (r < 0 || verb == FETCH_EXTRACT)
		return r;
	return link_session(link, o->args ? o->args[0] : NULL, ret_session, err);
}

int fetch_run(const struct options *o, enum fetch_verb verb)
{
	_cleanup_free_ char *path = NULL;
	/* Destructors run in reverse: the private daemon must end before the file is discarded. */
	_cleanup_destination_ struct destination dest = DESTINATION_INIT;
	_cleanup_link_ struct link link = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_free_ char *session = NULL;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Stop stop = TRACED__CONTROL__STOP__INIT;
	Traced__Control__Snapshot snapshot = TRACED__CONTROL__SNAPSHOT__INIT;
	Traced__Control__Extract extract = TRACED__CONTROL__EXTRACT__INIT;
	Traced__Control__Output output;
	struct progress progress;
	int r;

	if (verb == FETCH_STOP && !o->output && fetch_end_files(o, &r))
		return r;
	/* The session names the output. */
	if (!o->output && verb != FETCH_EXTRACT) {
		if (fetch_open_link(&link, o, verb, &session, &err) < 0)
			return cli_fail(&err);
		path = fetch_default_output(o, verb, session);
		if (!path)
			return cli_fail((error_errno(&err, -ENOMEM, "%s", session), &err));
	}
	r = destination_open(&dest, o, path);
	if (r)
		return r;
	dest.file.fresh = path && verb == FETCH_SNAPSHOT;
	if (merge_files_open(&dest.merges, o, &err) < 0 ||
	    (!link.client && fetch_open_link(&link, o, verb, &session, &err) < 0))
		return cli_fail(&err);
	if (verb == FETCH_STOP && fetch_refuse_watch(&link, session, &err) < 0)
		return cli_fail(&err);
	dest.extracted = verb == FETCH_EXTRACT;
	destination_fill(&dest, o, &output);
	switch (verb) {
	case FETCH_STOP:
		stop.session = session;
		stop.output = &output;
		request.verb_case = TRACED__CONTROL__REQUEST__VERB_STOP;
		request.stop = &stop;
		break;
	case FETCH_SNAPSHOT:
		snapshot.session = session;
		snapshot.output = &output;
		request.verb_case = TRACED__CONTROL__REQUEST__VERB_SNAPSHOT;
		request.snapshot = &snapshot;
		break;
	case FETCH_EXTRACT:
		if (o->instance)
			extract.instance = (char *)o->instance;
		extract.output = &output;
		request.verb_case = TRACED__CONTROL__REQUEST__VERB_EXTRACT;
		request.extract = &extract;
		break;
	}
	progress_init(&progress, !o->quiet, destination_fd(&dest));
	progress_text(&progress, "writing ...");
	r = link_call(&link, &request, dest.fds, dest.fd_count, &reply, &err);
	progress_clear(&progress);
	if (r == -EBUSY && verb == FETCH_STOP && !o->output)
		return fetch_end_only(&link, &request, o);
	/* `stop out.json`: the argument is a file, not a session. */
	if (r == -ENOENT && session && !o->output && export_format_find(NULL, session))
		error_hint(&err, "name the output file with -o: -o %s", session);
	if (r < 0) {
		/* Unsent descriptors keep the file writer's socket open. */
		link_deinit(&link);
		return destination_fail(&dest, &err);
	}
	return destination_finish(&dest, o, reply);
}
