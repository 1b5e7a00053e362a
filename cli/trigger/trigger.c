/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Triggers up to the start of the process that follows them. */
#include "trigger.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "daemon/service/start.h"
#include "formats/formats.h"
#include "message_log.h"
#include "output/name.h"
#include "output/path.h"
#include "output/walk.h"
#include "report/watch.h"
#include "trigger_hook.h"
#include "trigger_run.h"

static int triggers_parse(struct triggers *t, struct error *err)
{
	const struct word_list *on = &t->o->on;

	if (on->count > WATCH_CONDITIONS_MAX)
		return error_set(err, -EINVAL, "more than %d conditions", WATCH_CONDITIONS_MAX);
	for (size_t i = 0; i < on->count; i++) {
		int r = watch_condition_parse(on->items[i], &t->conditions[i], err);

		if (r < 0)
			return error_prefix(err, "--on");
		t->count++;
		t->has_lost |= t->conditions[i].kind == WATCH_LOST;
	}
	return 0;
}

/* An event has one filter in a session, so only one condition may need it with one. */
static int triggers_add_event(struct triggers *t, const char *name, const char *filter,
			      struct error *err)
{
	Traced__Control__EventSpec *spec;

	for (size_t i = 0; i < t->spec_count; i++) {
		if (strcmp(t->events[i], name) != 0)
			continue;
		if (!*t->specs[i].filter && !filter)
			return 0;
		error_set(err, -EINVAL, "--on: two conditions need %s, and one filters it", name);
		return error_hint(err, "join two filters by ||, or start a second session");
	}
	t->events[t->spec_count] = strdup(name);
	if (!t->events[t->spec_count])
		return error_errno(err, -ENOMEM, "--on");
	spec = &t->specs[t->spec_count];
	*spec = (Traced__Control__EventSpec)TRACED__CONTROL__EVENT_SPEC__INIT;
	spec->glob = t->events[t->spec_count];
	if (filter)
		spec->filter = (char *)(uintptr_t)filter;
	t->spec_list[t->spec_count++] = spec;
	return 0;
}

static int triggers_choose_events(struct triggers *t, struct error *err)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct watch_condition *c = &t->conditions[i];
		_cleanup_free_ char *name = NULL;
		int r = 0;

		for (const char *const *e = watch_kind_events(c->kind); *e && r == 0; e++)
			r = triggers_add_event(t, *e, NULL, err);
		if (r == 0 && c->kind == WATCH_EVENT) {
			if (asprintf(&name, "%s:%s", c->system, c->event) < 0)
				return error_errno(err, -ENOMEM, "--on");
			r = triggers_add_event(t, name, c->filter, err);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int triggers_check_format(struct triggers *t, struct error *err)
{
	const char *name = t->o->format ?: "json";
	const struct export_format *all;
	size_t count;

	all = export_formats(&count);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, name) && !all[i].directory && !all[i].samples_only) {
			t->output.format = (char *)(uintptr_t)name;
			t->ending = all[i].extension;
			return 0;
		}
	error_set(err, -EINVAL, "--format %s: snapshots are not written so", name);
	return error_hint(err, "for example: json, json.gz, pftrace, txt or traced");
}

int triggers_init(struct triggers *ret, const struct options *o, struct error *err)
{
	struct triggers *t = ret;
	int r;

	*t = (struct triggers){ .o = o,
				.folder_fd = -EBADF,
				.output = TRACED__CONTROL__OUTPUT__INIT };
	if (!o->ring) {
		error_set(err, -EINVAL, "--on needs --ring");
		return error_hint(err, "a trigger takes a snapshot of a flight recorder");
	}
	if (o->name && strlen(o->name) > TRIGGERS_NAME_MAX) {
		error_set(err, -EINVAL, "--on: the name '%s' is longer than %zu characters",
			  o->name, TRIGGERS_NAME_MAX);
		return error_hint(err, "triggers need a second session, which is NAME%s",
				  TRIGGERS_SUFFIX);
	}
	r = triggers_parse(t, err);
	if (r == 0)
		r = triggers_choose_events(t, err);
	return r < 0 ? r : triggers_check_format(t, err);
}

void triggers_deinit(struct triggers *t)
{
	for (size_t i = 0; i < t->count; i++)
		watch_condition_deinit(&t->conditions[i]);
	for (size_t i = 0; i < t->spec_count; i++)
		free(t->events[i]);
	close_fd(t->folder_fd);
	free(t->folder);
	free(t->hook);
}

int triggers_prepare(struct triggers *t, struct link *link, struct error *err)
{
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	int r;

	if (!t->o->hook)
		return 0;
	r = link_status(link, NULL, &reply, err);
	if (r < 0)
		return r;
	return trigger_hook_find(reply->status->hooks, t->o->hook, &t->hook, err);
}

/* Opens the folder, after making it. Its path is not used for that again: see output/walk.c. */
static int triggers_open_folder(const char *path, struct error *err)
{
	_cleanup_free_ char *plain = strdup(path);
	_cleanup_place_ struct place place = PLACE_INIT;
	_cleanup_close_ int fd = -EBADF;
	size_t len = strlen(path);
	struct stat st;
	int r;

	while (plain && len > 1 && plain[len - 1] == '/')
		plain[--len] = '\0';
	r = plain ? place_find(&place, plain, true, err) : -ENOMEM;
	if (r < 0)
		return err->message ? r : error_errno(err, r, "%s", path);
	if (*place.base && mkdirat(place.dir_fd, place.base, 0700) < 0 && errno != EEXIST)
		return error_errno(err, -errno, "%s", path);
	fd = openat(place.dir_fd, *place.base ? place.base : ".",
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return error_errno(err, -errno, "%s", path);
	if (path_owner_is_caller(st.st_uid))
		return TAKE_FD(fd);
	error_set(err, -EPERM, "%s belongs to uid %u", path, st.st_uid);
	return error_hint(err, "name another folder with -o");
}

/* For messages, and for the hook. */
static int triggers_name_folder(struct triggers *t, struct error *err)
{
	char link[32], path[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", t->folder_fd);
	len = readlink(link, path, sizeof(path));
	if (len < 0)
		return error_errno(err, -errno, "%s", link);
	t->folder = strndup(path, (size_t)len);
	return t->folder ? 0 : error_errno(err, -ENOMEM, "folder");
}

/* The folder of the snapshots, by default SESSION.triggers, and the log in it, which is returned.
 */
static int triggers_open_log(struct triggers *t, const char *session, struct error *err)
{
	_cleanup_free_ char *name = NULL, *base = NULL, *log = NULL;
	int r;

	if (!t->o->output && asprintf(&name, "%s.triggers", session) < 0)
		return error_errno(err, -ENOMEM, "folder");
	t->folder_fd = triggers_open_folder(t->o->output ?: name, err);
	r = t->folder_fd < 0 ? t->folder_fd : triggers_name_folder(t, err);
	if (r < 0)
		return r;
	if (asprintf(&base, "%s.log", session) < 0 || asprintf(&log, "%s/%s", t->folder, base) < 0)
		return error_errno(err, -ENOMEM, "log");
	r = message_log_open(t->folder_fd, base, 0600, log, err);
	if (r < 0)
		error_hint(err, "-o FOLDER: the snapshots and a log are written there");
	return r;
}

/*
 * `lost` alone needs no event, but losses: a recorder that overwrites has none. The recorder's
 * events are streamed, then, and what the stream loses counts.
 */
static void triggers_stream_recorder(const struct triggers *t, Traced__Control__Start *start)
{
	*start = *t->recorder;
	start->ring = start->detached = false;
	start->duration_ns = 0;
	start->place = (char *)protobuf_c_empty_string;
	start->n_conditions = start->n_hists = start->n_triggers = 0;
}

static int triggers_start_watching(struct triggers *t, struct link *link, const char *name,
				   struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Start start = TRACED__CONTROL__START__INIT;
	Traced__Control__Output output = TRACED__CONTROL__OUTPUT__INIT;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	int r;

	output.format = (char *)"watch";
	start.events = t->spec_list;
	start.n_events = t->spec_count;
	if (!t->spec_count)
		triggers_stream_recorder(t, &start);
	start.name = (char *)(uintptr_t)name;
	/* Even if the recorder has another clock: times are compared with CLOCK_BOOTTIME. */
	start.clock = (char *)"boot";
	start.stream = true;
	start.output = &output;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_START;
	request.start = &start;
	r = link_call(link, &request, NULL, 0, &reply, err);
	if (r < 0)
		return error_prefix(err, "--on");
	if (reply->body_case != TRACED__CONTROL__REPLY__BODY_SESSION)
		return error_set(err, -EPROTO, "unexpected reply from traced");
	for (size_t i = 0; i < reply->session->n_warnings; i++)
		cli_pass_on(reply->session->warnings[i]);
	return 0;
}

/* The reading end of the pipe that the exporter writes into. */
static int triggers_follow(struct triggers *t, struct link *link, const char *name,
			   uint64_t *ret_id, struct error *err)
{
	Traced__Control__Output output = TRACED__CONTROL__OUTPUT__INIT;
	_cleanup_close_ int ours = -EBADF, theirs = -EBADF;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_errno(err, -errno, "pipe");
	ours = ends[0];
	theirs = ends[1];
	output.format = (char *)"watch";
	output.stream = true;
	output.conditions = (char **)(uintptr_t)t->o->on.items;
	output.n_conditions = t->o->on.count;
	r = link_attach(link, name, &output, theirs, ret_id, err);
	return r < 0 ? r : TAKE_FD(ours);
}

int triggers_watch(struct triggers *t, struct link *link, const char *name, uint64_t *ret_id,
		   struct error *err)
{
	int r = triggers_start_watching(t, link, name, err);

	return r < 0 ? r : triggers_follow(t, link, name, ret_id, err);
}

_Noreturn static void triggers_main(struct trigger_run *run, int log, const sigset_t *signals)
{
	const int keep[] = { control_client_fd(run->link->client), run->pipe };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	sigprocmask(SIG_SETMASK, signals, NULL);
	prctl(PR_SET_NAME, "tracectl-watch");
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	/* Snapshots are written, and removed, without the path. */
	if (fchdir(run->triggers->folder_fd) < 0)
		_exit(CLI_FAILED);
	/* Descriptors of whoever called tracectl: a lock, for example, must not stay held. */
	close_fds_from_except(STDERR_FILENO + 1, keep, ARRAY_SIZE(keep));
	_exit(trigger_run(run));
}

int triggers_begin(struct triggers *t, struct link *link, const char *session,
		   const sigset_t *signals, struct error *err)
{
	_cleanup_close_ int log = -EBADF, fd = -EBADF;
	_cleanup_free_ char *watch = NULL;
	struct trigger_run run = { .triggers = t, .link = link, .session = session };
	pid_t pid;
	int r;

	if (asprintf(&watch, "%s" TRIGGERS_SUFFIX, session) < 0)
		return error_errno(err, -ENOMEM, "session");
	run.watch = watch;
	r = run.pipe = fd = triggers_watch(t, link, watch, &run.watch_id, err);
	if (r >= 0)
		r = link_attach(link, session, NULL, -EBADF, &run.attach_id, err);
	/* Last: what is refused leaves no folder. */
	if (r >= 0)
		r = log = triggers_open_log(t, session, err);
	if (r >= 0 && output_signals_pending())
		r = error_set(err, -ECANCELED, "interrupted: nothing records");
	if (r < 0)
		return r;
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return error_errno(err, -errno, "fork");
	if (!pid)
		triggers_main(&run, log, signals);
	return 0;
}
