/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/manager.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/account.h"
#include "base/closer.h"
#include "base/io.h"
#include "base/log.h"
#include "base/place.h"
#include "base/plural.h"
#include "daemon/service/accounts.h"
#include "daemon/service/arming.h"
#include "daemon/service/audit.h"
#include "daemon/service/child.h"
#include "daemon/service/connection.h"
#include "daemon/service/job.h"
#include "daemon/service/leaving.h"
#include "daemon/service/marking.h"
#include "daemon/service/notify.h"
#include "daemon/service/policy.h"
#include "daemon/service/session.h"
#include "daemon/service/spool.h"
#include "daemon/service/turns.h"
#include "daemon/service/worker.h"

#define BACKLOG 64
/* Extra connections for root above the limit of clients. */
#define ROOT_CLIENTS 8
/* Timers of this length or more may be this late. */
#define LATE_US 250000
/* Retry interval of accept() without descriptors or memory. */
#define LISTEN_AGAIN_US UINT64_C(1000000)
/* Shorter than the unit's TimeoutStopSec. */
#define STOP_BOUND_US UINT64_C(60000000)
/* Time for waiting clients to fetch a recording that the daemon ends. */
#define CLAIM_BOUND_US UINT64_C(15000000)
/* How long clients and threads are busy with what precedes a start. */
#define SETTLE_US 2000

static int manager_replace_string(char **field, const char *value)
{
	char *copy;

	if (!value)
		return 0;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

static void manager_log_warnings(struct buf *warnings)
{
	char *text = buf_string(warnings), *line, *rest = text;

	while (rest && (line = strsep(&rest, "\n")))
		if (*line)
			log_warning("%s", line);
}

/* Defaults, then files, then the command line. */
static int manager_read_config(struct config *ret, const struct manager_options *o,
			       struct error *err)
{
	_cleanup_config_ struct config c = { 0 };
	_cleanup_buf_ struct buf warnings = BUF_INIT;
	int r;

	r = config_init(&c);
	if (r < 0)
		return error_errno(err, r, "configuration");
	r = config_load(&c, o->config_file ?: CONFIG_FILE, o->config_file != NULL, &warnings, err);
	if (r < 0)
		return r;
	if (manager_replace_string(&c.socket, o->socket) < 0 ||
	    manager_replace_string(&c.state_dir, o->state_dir) < 0 ||
	    manager_replace_string(&c.spool_dir, o->spool_dir) < 0 ||
	    manager_replace_string(&c.metrics, o->metrics) < 0)
		return error_errno(err, -ENOMEM, "configuration");
	if (o->log_level >= 0)
		c.log_level = o->log_level;
	else if (o->private)
		c.log_level = MIN(c.log_level, LOG_WARNING); /* stderr is a user's terminal */
	manager_log_warnings(&warnings);
	*ret = c;
	c = (struct config){ 0 };
	return 0;
}

/* Only the loop and manager_free() call it: no caller holds an object that is over. */
static void manager_reap(void *userdata)
{
	struct manager *m = userdata;
	struct connection *c;
	struct session *s;
	struct job *j;

	loop_doing("freeing clients, sessions and jobs that are over", NULL);
	while ((j = TAILQ_FIRST(&m->over.jobs))) {
		TAILQ_REMOVE(&m->over.jobs, j, list);
		job_free(j);
	}
	while ((s = TAILQ_FIRST(&m->over.sessions))) {
		TAILQ_REMOVE(&m->over.sessions, s, list);
		session_free(s);
	}
	while ((c = TAILQ_FIRST(&m->over.connections))) {
		TAILQ_REMOVE(&m->over.connections, c, list);
		connection_free(c);
	}
}

void manager_reap_later(struct manager *m)
{
	loop_source_enable(m->reaper, true);
}

int manager_new(struct manager **ret, struct loop *loop, const struct manager_options *options,
		struct error *err)
{
	_cleanup_(manager_freep) struct manager *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return error_errno(err, -ENOMEM, "manager");
	TAILQ_INIT(&m->connections);
	TAILQ_INIT(&m->sessions);
	TAILQ_INIT(&m->jobs);
	TAILQ_INIT(&m->retirements);
	TAILQ_INIT(&m->over.connections);
	TAILQ_INIT(&m->over.sessions);
	TAILQ_INIT(&m->over.jobs);
	metrics_init(&m->metrics);
	m->loop = loop;
	m->options = *options;
	m->state_dir = FOLDER_INIT;
	m->listen_fd = -EBADF;
	m->started_boot_ns = now_ns(CLOCK_BOOTTIME);
	m->settle_us = SETTLE_US;
	r = manager_read_config(&m->config, options, err);
	if (r < 0)
		return r;
	log_set_level(m->config.log_level);
	m->made_spool_dir = access(m->config.spool_dir, F_OK) < 0;
	r = folder_take(&m->state_dir, m->config.state_dir, 0755, err);
	if (r < 0)
		return r;
	r = loop_add_deferred(loop, &m->reaper, manager_reap, m);
	if (r < 0)
		return error_errno(err, r, "event loop");
	r = turns_init(&m->turns, loop);
	if (r < 0)
		return error_errno(err, r, "event loop");
	r = accounts_new(&m->accounts);
	if (r >= 0)
		r = worker_new(&m->worker, loop, NULL);
	if (r >= 0)
		r = closer_new(&m->closer);
	if (r >= 0)
		r = leaving_new(&m->leaving, loop);
	if (r < 0)
		return error_errno(err, r, "worker");
	m->env = (struct capture_env){ .proc = "/proc",
				       .state_dir = m->config.state_dir,
				       .excerpt = &m->excerpt };
	*ret = TAKE_PTR(m);
	return 0;
}

struct manager *manager_free(struct manager *m)
{
	if (!m)
		return NULL;
	m->stopping = true;
	while (!TAILQ_EMPTY(&m->jobs))
		job_abandon(TAILQ_FIRST(&m->jobs));
	while (!TAILQ_EMPTY(&m->sessions))
		session_abandon(TAILQ_FIRST(&m->sessions));
	while (!TAILQ_EMPTY(&m->connections))
		connection_over(TAILQ_FIRST(&m->connections));
	manager_reap(m);
	m->reaper = loop_source_free(m->reaper);
	turns_deinit(&m->turns);
	metrics_close(m);
	metrics_deinit(&m->metrics);
	marking_close(m);
	loop_source_free(m->listen);
	loop_source_free(m->listen_again);
	loop_source_free(m->claim_timer);
	loop_source_free(m->stop_timer);
	/* Unlink before closing: afterwards the path may belong to a successor. */
	if (m->socket_path)
		unlink(m->socket_path);
	/*
	 * Clients that are not accepted yet may have sent descriptors. It is no connection to shut
	 * down: the service manager has the socket, too, and the next daemon gets it.
	 */
	closer_close(m->closer, 0, CLOSER_FILE, m->listen_fd);
	free(m->socket_path);
	retirement_submit_all(m);
	/* Waits until the remaining instances are removed. */
	worker_free(m->worker);
	leaving_free(m->leaving);
	/* After it nothing may be left to do: its threads may hang. */
	closer_free(m->closer);
	sparing_deinit(&m->sparing);
	tracefs_free(m->worker_tracefs);
	tracefs_free(m->tracefs);
	if (m->options.private && m->made_spool_dir)
		rmdir(m->config.spool_dir);
	if (m->options.private)
		folder_remove(&m->state_dir);
	folder_deinit(&m->state_dir);
	accounts_free(m->accounts);
	config_deinit(&m->config);
	free(m);
	return NULL;
}

int manager_env(struct manager *m, const struct capture_env **ret, struct error *err)
{
	int r;

	if (!m->tracefs) {
		r = tracefs_open(&m->tracefs, m->options.tracefs, err);
		if (r < 0)
			return r;
		m->env.tracefs = m->tracefs;
		child_set_tracefs(tracefs_device(m->tracefs));
	}
	*ret = &m->env;
	return 0;
}

int manager_worker_env(struct manager *m, struct capture_env *ret, struct error *err)
{
	const struct capture_env *env;
	int r = manager_env(m, &env, err);

	if (r < 0)
		return r;
	if (!m->worker_tracefs) {
		r = tracefs_dup(&m->worker_tracefs, m->tracefs);
		if (r < 0)
			return error_errno(err, r, "tracefs");
	}
	*ret = *env;
	ret->tracefs = m->worker_tracefs;
	return 0;
}

struct session *manager_find_session(struct manager *m, uid_t uid, const char *name)
{
	struct session *s;

	TAILQ_FOREACH(s, &m->sessions, list)
	if (s->uid == uid && strcmp(s->name, name) == 0)
		return s;
	return NULL;
}

/* A persistent log names all leftovers at each start; a terminal names each only once. */
static void manager_on_leftover(void *userdata, const struct spool_leftover *found)
{
	const struct manager *m = userdata;
	struct log_fields fields = { .cpu = -1, .message_id = AUDIT_LEFTOVER };
	_cleanup_buf_ struct buf size = BUF_INIT;

	if (m->options.private && found->reported)
		return;
	format_bytes(found->bytes, &size);
	log_write(m->options.private ? LOG_WARNING : LOG_NOTICE, &fields,
		  "%s (%s) is left from an earlier run: tracectl convert %s FILE", found->path,
		  buf_string(&size) ?: "?", found->path);
	spool_mark_reported(found->path);
}

/* Logs each line of text. text may be NULL. */
static void manager_log_kept(char *text, const struct log_fields *fields)
{
	char *save = NULL;

	for (char *p = text ? strtok_r(text, "\n", &save) : NULL; p;
	     p = strtok_r(NULL, "\n", &save))
		log_write(LOG_NOTICE, fields, "%s", p);
}

void manager_recover(struct manager *m)
{
	struct log_fields fields = { .cpu = -1, .message_id = AUDIT_PUT_BACK };
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf kept = BUF_INIT;
	const struct capture_env *env;
	int r;

	r = manager_env(m, &env, &err);
	if (r >= 0)
		r = capture_recover(env, &kept, &err);
	if (r < 0)
		log_warning("%s%s%s", err.message, err.hint ? "; " : "", err.hint ?: "");
	else if (r > 0)
		log_write(LOG_NOTICE, &fields,
			  "undid %d change%s that an earlier run left in the kernel", r,
			  plural_s(r));
	manager_log_kept(buf_string(&kept), &fields);
	spool_remove_unfinished(m->config.spool_dir);
	spool_find_leftovers(m->config.spool_dir, manager_on_leftover, m);
}

static void manager_notify_status(struct manager *m)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const struct session *s;

	TAILQ_FOREACH(s, &m->sessions, list)
	if (session_records(s))
		buf_printf(&text, "%s%s (%s)", text.len ? ", " : "STATUS=Recording: ", s->name,
			   s->what);
	if (!text.len)
		buf_puts(&text, m->job_count ? "STATUS=Exporting" : "STATUS=Idle");
	if (buf_string(&text))
		notify(text.data);
}

void manager_changed(struct manager *m)
{
	bool idle = !m->job_count && !m->session_count;
	struct connection *c;

	if (!m->options.private)
		manager_notify_status(m);
	metrics_write(m);
	if (m->listen)
		loop_source_enable(m->listen, true);
	if (!idle || !(m->stopping || (m->options.private && TAILQ_EMPTY(&m->connections))))
		return;
	TAILQ_FOREACH(c, &m->connections, list)
	connection_flush(c);
	loop_exit(m->loop, 0);
}

/* Refuses in the protocol's own words, so that tracectl can show the reason. */
static void manager_turn_away(int fd, const struct error *err)
{
	Traced__Control__Reply reply = TRACED__CONTROL__REPLY__INIT;
	Traced__Control__Error error = TRACED__CONTROL__ERROR__INIT;
	static struct log_limit limit = LOG_LIMIT_INIT;
	struct frame_io io;

	frame_io_init(&io, fd);
	error.code = (uint32_t)err->code;
	error.message = err->message;
	error.hint = err->hint;
	reply.error = &error;
	if (frame_queue(&io, &reply.base, NULL, 0) == 0)
		frame_flush(&io);
	frame_io_deinit(&io);
	if (log_limit_pass(&limit))
		log_notice("refused a client: %s", err->message);
}

/* -EUSERS. Root may exceed the limit a little, to be able to end sessions. */
static int manager_check_room(const struct manager *m, uid_t uid, struct error *err)
{
	unsigned max = m->config.clients;

	if (policy_trusts(uid))
		max += ROOT_CLIENTS;
	if (m->connection_count < max)
		return policy_check_client(m, uid, err);
	error_set(err, -EUSERS, "too many clients are connected to traced: the limit is %u",
		  m->config.clients);
	return error_hint(err, "close some, or raise \"clients\" in [limits] of traced.conf");
}

static void manager_on_listen_again(void *userdata)
{
	struct manager *m = userdata;

	if (m->listen)
		loop_source_enable(m->listen, true);
}

static void manager_on_connect(void *userdata, int listen_fd, uint32_t revents _unused_)
{
	static struct log_limit limit = LOG_LIMIT_INIT;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	_cleanup_error_ struct error err = ERROR_INIT;
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(peer);
	struct manager *m = userdata;

	loop_doing("a new client", NULL);
	if (fd < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		if (log_limit_pass(&limit))
			log_warning("accept: %s", strerror(errno));
		/*
		 * accept() would fail again at once: retry after a connection ends, or after a
		 * while.
		 */
		loop_timer_in(m->listen_again, LISTEN_AGAIN_US);
		loop_source_enable(m->listen, false);
		return;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	if (manager_check_room(m, peer.uid, &err) < 0) {
		manager_turn_away(fd, &err);
		closer_close(m->closer, accounts_of(m->accounts, peer.uid), CLOSER_CONNECTION, fd);
	} else if (manager_adopt(m, fd, &err) < 0) {
		log_warning("%s", err.message);
	}
}

int manager_adopt(struct manager *m, int fd, struct error *err)
{
	struct connection *c;

	return connection_new(&c, m, fd, err);
}

/* Removes a dead daemon's socket file; keeps one that another daemon listens on. */
static int manager_clear_socket(const char *path, const struct sockaddr_un *sa, struct error *err)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return error_errno(err, -errno, "socket");
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : error_errno(err, -errno, "%s", path);
	if (!S_ISSOCK(st.st_mode))
		return error_set(err, -EEXIST, "%s exists and is not a socket", path);
	if (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 || errno == EAGAIN) {
		error_set(err, -EADDRINUSE, "another traced listens on %s", path);
		return error_hint(err, "%s--socket names another path",
				  place_has_unit() ? "systemctl status " TRACED_PROGRAM "; " : "");
	}
	if (unlink(path) < 0 && errno != ENOENT)
		return error_errno(err, -errno, "%s", path);
	return 0;
}

/* Mode 0660 for the group if it exists, otherwise for root alone. */
static int manager_set_access(const char *path, struct error *err)
{
	gid_t gid;
	bool has_group = account_group(CONTROL_GROUP, &gid) == 0;

	if (has_group && chown(path, (uid_t)-1, gid) < 0 && errno != EPERM)
		return error_errno(err, -errno, "%s", path);
	if (chmod(path, has_group ? 0660 : 0600) < 0)
		return error_errno(err, -errno, "%s", path);
	return 0;
}

static int manager_make_socket(struct manager *m, struct error *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -EBADF;
	const char *path = m->config.socket;
	_cleanup_free_ char *folder = strdup(path), *copy = strdup(path);
	mode_t mask;
	int r;

	if (!folder || !copy)
		return error_errno(err, -ENOMEM, "%s", path);
	if (strlen(path) >= sizeof(sa.sun_path))
		return error_set(err, -ENAMETOOLONG, "the socket's path is too long: %s", path);
	memcpy(sa.sun_path, path, strlen(path));
	*(strrchr(folder, '/') ?: folder) = '\0';
	r = *folder ? make_dir(folder, 0755, err) : 0;
	if (r >= 0)
		r = manager_clear_socket(path, &sa, err);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_errno(err, -errno, "socket");
	/* Nobody may connect before manager_set_access() has run. */
	mask = umask(0177);
	r = bind(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
	umask(mask);
	if (r < 0)
		return error_errno(err, r, "%s", path);
	m->socket_path = TAKE_PTR(copy);
	r = manager_set_access(path, err);
	if (r < 0)
		return r;
	if (listen(fd, BACKLOG) < 0)
		return error_errno(err, -errno, "%s", path);
	m->listen_fd = TAKE_FD(fd);
	return 0;
}

int manager_listen(struct manager *m, int fd, struct error *err)
{
	int r = 0;

	if (fd >= 0)
		m->listen_fd = fd;
	else
		r = manager_make_socket(m, err);
	if (r < 0)
		return r;
	/* Create the timer now: later there may be no descriptor for it. */
	r = loop_add_timer(m->loop, &m->listen_again, CLOCK_MONOTONIC, LATE_US,
			   manager_on_listen_again, m);
	if (r >= 0)
		r = loop_add_io(m->loop, &m->listen, m->listen_fd, EPOLLIN, manager_on_connect, m);
	return r < 0 ? error_errno(err, r, "can't watch the socket") : 0;
}

void manager_reload(struct manager *m)
{
	_cleanup_config_ struct config c = { 0 };
	_cleanup_error_ struct error err = ERROR_INIT;
	struct log_fields fields = { .cpu = -1, .message_id = AUDIT_CONFIGURATION };
	char *swap;

	notify_reloading();
	if (manager_read_config(&c, &m->options, &err) < 0) {
		log_write(LOG_ERR, &fields, "%s; the configuration is unchanged", err.message);
	} else {
		if (strcmp(c.socket, m->config.socket) != 0 ||
		    strcmp(c.spool_dir, m->config.spool_dir) != 0 ||
		    strcmp(c.state_dir, m->config.state_dir) != 0)
			log_warning("socket, spool_dir and state_dir change only with a restart");
			/* Keep the old directories: env and living sessions point to them. */
#define KEEP(field) (swap = c.field, c.field = m->config.field, m->config.field = swap)
		KEEP(socket);
		KEEP(spool_dir);
		KEEP(state_dir);
#undef KEEP
		config_deinit(&m->config);
		m->config = c;
		c = (struct config){ 0 };
		log_set_level(m->config.log_level);
		marking_reload(m);
		sparing_refresh(m);
		metrics_write(m);
		log_info("configuration read again");
	}
	notify("READY=1");
}

static void manager_on_stop_bound(void *userdata)
{
	struct manager *m = userdata;

	log_warning("exports take too long: their recordings stay in %s", m->config.spool_dir);
	loop_exit(m->loop, 0);
}

/* Calls act for each session, which act may end. */
static void manager_for_sessions(struct manager *m, void (*act)(struct session *s))
{
	struct session *s, *next;

	for (s = TAILQ_FIRST(&m->sessions); s; s = next) {
		next = TAILQ_NEXT(s, list);
		act(s);
	}
}

static void manager_on_claim_bound(void *userdata)
{
	manager_for_sessions(userdata, session_leave);
}

static int manager_bound_stop(struct manager *m, struct loop_source **timer, uint64_t us,
			      void (*late)(void *userdata))
{
	int r = loop_add_timer(m->loop, timer, CLOCK_MONOTONIC, LATE_US, late, m);

	if (r >= 0)
		loop_timer_in(*timer, us);
	return r;
}

void manager_stop(struct manager *m)
{
	if (m->stopping) {
		loop_exit(m->loop, 0);
		return;
	}
	m->stopping = true;
	notify("STOPPING=1");
	m->listen = loop_source_free(m->listen);
	manager_for_sessions(m, session_shut_down);
	manager_bound_stop(m, &m->stop_timer, STOP_BOUND_US, manager_on_stop_bound);
	if (manager_bound_stop(m, &m->claim_timer, CLAIM_BOUND_US, manager_on_claim_bound) < 0)
		manager_on_claim_bound(m);
	manager_changed(m);
}
