/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "link.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/place.h"
#include "child.h"

/* How long we wait for a private daemon to remove its instances. */
#define GOODBYE_NS (10 * NSEC_PER_SEC)
#define OURSELVES "/proc/self/exe"

bool link_no_daemon(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED;
}

bool link_has_daemon;

/* Ourselves, or the traced of the same build tree, else the installed one. */
static int link_find_daemon(char **ret, struct error *err)
{
	static const char *const places[] = { ".", "../daemon", "../sbin" };
	const char *named = secure_getenv("TRACED_DAEMON") ?: (link_has_daemon ? OURSELVES : NULL);
	char self[PATH_MAX];
	ssize_t len;

	if (named) {
		*ret = strdup(named);
		return *ret ? 0 : error_errno(err, -ENOMEM, "%s", named);
	}
	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len > 0) {
		self[len] = '\0';
		*(strrchr(self, '/') ?: self) = '\0';
		for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
			_cleanup_free_ char *path = NULL;

			if (asprintf(&path, "%s/%s/" TRACED_PROGRAM, self, places[i]) < 0)
				return error_errno(err, -ENOMEM, "traced");
			if (!access(path, X_OK)) {
				*ret = TAKE_PTR(path);
				return 0;
			}
		}
	}
	if (!access(TRACED_SBINDIR "/" TRACED_PROGRAM, X_OK)) {
		*ret = strdup(TRACED_SBINDIR "/" TRACED_PROGRAM);
		return *ret ? 0 : error_errno(err, -ENOMEM, "traced");
	}
	error_set(err, -ENOENT, "the program " TRACED_PROGRAM " was not found");
	return error_hint(err, "install it in " TRACED_SBINDIR
			       " or beside tracectl, or set TRACED_DAEMON=PATH");
}

_Noreturn static void link_daemon_main(const char *path, int fd)
{
	char number[16];

	/* The terminal's Ctrl-C is for tracectl; the daemon ends with its connection. */
	setsid();
	child_reset_signals();
	fcntl(fd, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d", fd);
	/* traced-multi is a daemon by this name. */
	execl(path, strcmp(path, OURSELVES) ? path : TRACED_PROGRAM, "--private", "--fd", number,
	      (char *)NULL);
	fprintf(stderr, "tracectl: %s: %m\n", path);
	_exit(127);
}

static int link_spawn_daemon(struct link *l, struct error *err)
{
	_cleanup_close_ int ours = -EBADF, theirs = -EBADF;
	_cleanup_free_ char *path = NULL;
	int pair[2], r;

	r = link_find_daemon(&path, err);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return error_errno(err, -errno, "socketpair");
	ours = pair[0];
	theirs = pair[1];
	fflush(NULL);
	l->daemon = fork();
	if (l->daemon < 0) {
		l->daemon = 0;
		return error_errno(err, -errno, "fork");
	}
	if (!l->daemon)
		link_daemon_main(path, theirs);
	theirs = close_fd(theirs);
	r = control_client_adopt(&l->client, TAKE_FD(ours), err);
	if (r < 0)
		error_prefix(err, "%s --private", path);
	return r;
}

static void link_hint_start(enum link_mode mode, struct error *err)
{
	if (link_has_daemon)
		error_hint(err,
			   "start one there; or, for a recording, be root there: -H root@HOST");
	else if (mode == LINK_LISTENING)
		error_hint(err, "%s (or name its socket with --socket)", place_start_daemon());
	else
		error_hint(err, "%s; or try again as root (sudo)", place_start_daemon());
}

static int link_connect(struct link *l, const struct options *o, enum link_mode mode,
			struct error *err)
{
	const char *socket_path = o->socket ?: CONTROL_SOCKET;
	_cleanup_error_ struct error refused = ERROR_INIT;
	int r = control_client_connect(&l->client, socket_path, &refused);

	if (r < 0 && !link_no_daemon(r)) {
		error_move(err, &refused);
	} else if (r < 0 && mode >= LINK_PRIVATE_TOO && geteuid() == 0) {
		if (!o->quiet)
			cli_warn("no traced is running%s%s: starting a private one",
				 o->socket ? " at " : "", o->socket ?: "");
		r = link_spawn_daemon(l, err);
	} else if (r < 0) {
		error_set(err, r, "no traced is running (%s)", socket_path);
		link_hint_start(mode, err);
	}
	return r;
}

int link_open(struct link *ret, const struct options *o, enum link_mode mode, struct error *err)
{
	_cleanup_link_ struct link l = { 0 };
	bool is_private = mode == LINK_PRIVATE_FIRST && geteuid() == 0 && !o->socket;
	_cleanup_error_ struct error failed = ERROR_INIT;
	int r = is_private ? link_spawn_daemon(&l, &failed) : -ENOENT;

	/* Without the program, a daemon that listens will do. */
	if (r == -ENOENT && !l.daemon)
		r = link_connect(&l, o, mode, err);
	else if (r < 0)
		error_move(err, &failed);
	if (r < 0)
		return r;
	*ret = l;
	l = (struct link){ 0 };
	return 0;
}

int link_explain(const struct link *l, int r, struct error *err)
{
	if (r != -ECONNRESET)
		return r;
	error_set(err, r, "lost the connection to traced");
	if (l->unspooled)
		return r;
	if (l->daemon)
		error_hint(err,
			   "'tracectl recover' lists and exports what is left of the recording");
	else
		error_hint(err, "%s; 'tracectl recover' lists what is left of the recording",
			   place_has_unit() ? "see journalctl -u " TRACED_PROGRAM : "see its log");
	return r;
}

int link_call(struct link *l, Traced__Control__Request *request, const int *fds, size_t fd_count,
	      Traced__Control__Reply **ret, struct error *err)
{
	int r = control_client_call(l->client, request, fds, fd_count, ret, err);

	return r < 0 ? link_explain(l, r, err) : r;
}

static int link_query(struct link *l, Traced__Control__StatusQuery *query,
		      Traced__Control__Reply **ret, struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	int r;

	request.verb_case = TRACED__CONTROL__REQUEST__VERB_STATUS;
	request.status = query;
	r = link_call(l, &request, NULL, 0, ret, err);
	if (r == 0 && (*ret)->body_case != TRACED__CONTROL__REPLY__BODY_STATUS)
		return error_set(err, -EPROTO, "unexpected reply from traced");
	return r;
}

int link_status(struct link *l, const char *session, Traced__Control__Reply **ret,
		struct error *err)
{
	Traced__Control__StatusQuery query = TRACED__CONTROL__STATUS_QUERY__INIT;

	if (session)
		query.session = (char *)(uintptr_t)session;
	return link_query(l, &query, ret, err);
}

int link_kept(struct link *l, Traced__Control__Reply **ret, struct error *err)
{
	Traced__Control__StatusQuery query = TRACED__CONTROL__STATUS_QUERY__INIT;

	query.kept = true;
	return link_query(l, &query, ret, err);
}

int link_cancel(struct link *l, const char *session, struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Cancel cancel = TRACED__CONTROL__CANCEL__INIT;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;

	cancel.session = (char *)(uintptr_t)session;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_CANCEL;
	request.cancel = &cancel;
	return link_call(l, &request, NULL, 0, &reply, err);
}

int link_attach(struct link *l, const char *session, Traced__Control__Output *output, int fd,
		uint64_t *ret_id, struct error *err)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Attach attach = TRACED__CONTROL__ATTACH__INIT;
	int64_t id;

	attach.session = (char *)(uintptr_t)session;
	attach.output = output;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_ATTACH;
	request.attach = &attach;
	id = control_client_send(l->client, &request, &fd, fd >= 0 ? 1 : 0, err);
	if (id < 0)
		return link_explain(l, (int)id, err);
	*ret_id = (uint64_t)id;
	return 0;
}

static void link_await_daemon(pid_t pid)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + GOODBYE_NS;
	const struct timespec pause = { .tv_nsec = 5 * NSEC_PER_MSEC };

	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (now_ns(CLOCK_MONOTONIC) > until) {
			cli_warn("the private traced (pid %d) is still cleaning up", (int)pid);
			return;
		}
		nanosleep(&pause, NULL);
	}
}

void link_deinit(struct link *l)
{
	control_client_free(l->client);
	if (l->daemon > 0)
		link_await_daemon(l->daemon);
	*l = (struct link){ 0 };
}

int link_session(struct link *l, const char *name, char **ret, struct error *err)
{
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	_cleanup_buf_ struct buf names = BUF_INIT;
	const Traced__Control__Status *status;
	const char *only = NULL, *others = NULL;
	size_t count = 0;
	int r;

	if (name) {
		*ret = strdup(name);
		return *ret ? 0 : error_errno(err, -ENOMEM, "%s", name);
	}
	r = link_status(l, NULL, &reply, err);
	if (r < 0)
		return r;
	status = reply->status;
	for (size_t i = 0; i < status->n_sessions; i++) {
		if (status->sessions[i]->for_conditions)
			continue;
		/* Root sees other users' sessions as UID/NAME. */
		if (strchr(status->sessions[i]->name, '/')) {
			others = status->sessions[i]->name;
			continue;
		}
		only = status->sessions[i]->name;
		buf_printf(&names, "%s%s", count++ ? ", " : "", only);
	}
	if (count == 1) {
		*ret = strdup(only);
		return *ret ? 0 : error_errno(err, -ENOMEM, "session");
	}
	if (!count && others) {
		error_set(err, -ENOENT, "only other users' sessions are recording");
		return error_hint(err, "name one, for example %s", others);
	}
	if (!count) {
		error_set(err, -ENOENT, "no session is recording");
		return error_hint(err, "start one with tracectl start -e GLOB");
	}
	error_set(err, -EINVAL, "there are %zu sessions: name one", count);
	return error_hint(err, "name one of %s", buf_string(&names) ?: "them");
}
