/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/policy.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/closer.h"
#include "base/plural.h"
#include "daemon/capture/plan/hists.h"
#include "daemon/capture/plan/synthetic.h"
#include "daemon/service/accounts.h"
#include "daemon/service/connection.h"
#include "daemon/service/job.h"
#include "daemon/service/leaving.h"
#include "daemon/service/session.h"
#include "formats/formats.h"

/* In one request of a user. Matching costs their product with all that the kernel has. */
#define USER_FUNCTIONS_MAX 32U
/* Exporters that do not end: of one user, and of all but root. */
#define USER_LEAVING_MAX 8U
#define USERS_LEAVING_MAX 64U
#define USER_GLOBS_BYTES_MAX 8192U
/* Recordings that failed exports left in the spool: of one user, and of all but root. */
#define USER_KEPT_MAX 32U
#define USERS_KEPT_MAX 256U

/* All users together may have so many times what one may: a user can have many uids. */
#define USERS_MEMORY 2U

bool policy_trusts(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

/* Returns -err->code. */
static int policy_hint_key(struct error *err, const char *what, const char *key)
{
	return error_hint(err, "%s; root may do it, or raise \"%s\" in [users] of traced.conf",
			  what, key);
}

static int policy_hint_allow(struct error *err, const char *what, const char *assignment)
{
	return error_hint(err, "%s%sroot may do it, or allow it: \"%s\" in [users] of traced.conf",
			  what, *what ? "; " : "", assignment);
}

int policy_check_client(const struct manager *m, uid_t uid, struct error *err)
{
	const uid_t account = accounts_of(m->accounts, uid);
	const struct connection *c;
	unsigned count = 0, own = 0;

	if (closer_is_blocked(m->closer, account)) {
		error_set(err, -EUSERS, "descriptors that uid %u sent to traced do not close",
			  account);
		return error_hint(err, "the file server or the network peer behind them does not "
				       "answer");
	}
	TAILQ_FOREACH(c, &m->connections, list)
	{
		count += c->account == account;
		own += c->uid == uid;
	}
	if (policy_trusts(uid) || count < m->config.users.clients)
		return 0;
	error_set(err, -EUSERS,
		  "%u client%s of uid %u%s %s connected to traced, which is the limit", count,
		  plural_s(count), account, count == own ? "" : " and its subordinate ids",
		  plural(count, "is", "are"));
	return policy_hint_key(err, "close some", "clients");
}

static int policy_check_sessions(const struct manager *m, uid_t uid, struct error *err)
{
	const uid_t account = accounts_of(m->accounts, uid);
	const struct session *s;
	unsigned count = 0, own = 0;

	TAILQ_FOREACH(s, &m->sessions, list)
	{
		count += s->account == account;
		own += s->uid == uid;
	}
	if (count < m->config.users.sessions)
		return 0;
	if (count == own)
		error_set(err, -EUSERS, "you have %u session%s, which is the limit", count,
			  plural_s(count));
	else
		error_set(err, -EUSERS,
			  "uid %u and its subordinate ids have %u session%s, which is "
			  "the limit",
			  account, count, plural_s(count));
	return policy_hint_key(err, "end one (tracectl list)", "sessions");
}

static void policy_put_bytes(struct buf *out, const char *before, uint64_t bytes)
{
	buf_puts(out, before);
	format_bytes(bytes, out);
}

static int policy_check_memory(const struct start_plan *p, const struct manager *m, uid_t uid,
			       struct error *err)
{
	uint64_t max = m->config.users.buffer_memory, used = 0, all = 0;
	const uid_t account = accounts_of(m->accounts, uid);
	_cleanup_buf_ struct buf text = BUF_INIT;
	const struct session *s;

	TAILQ_FOREACH(s, &m->sessions, list)
	{
		used += s->account == account ? s->memory_bytes : 0;
		all += policy_trusts(s->uid) ? 0 : s->memory_bytes;
	}
	if (!max)
		return 0;
	if (used <= max && p->memory_bytes <= max - used) {
		if (all <= USERS_MEMORY * max && p->memory_bytes <= USERS_MEMORY * max - all)
			return 0;
		policy_put_bytes(&text, "", all);
		error_set(err, -EDQUOT, "the sessions of all users have %s of kernel memory",
			  buf_string(&text) ?: "much");
		return policy_hint_key(err, "ask for less (-b), or wait", "buffer_memory");
	}
	policy_put_bytes(&text, "ring buffers of ", p->request.buffer_bytes);
	policy_put_bytes(&text,
			 p->request.hists.count ? " a CPU and histograms make " : " a CPU make ",
			 p->memory_bytes);
	if (used)
		policy_put_bytes(&text, ", and your other sessions have ", used);
	policy_put_bytes(&text, ": more than the ", max);
	error_set(err, -EDQUOT, "%s of kernel memory that you may use",
		  buf_string(&text) ?: "these ring buffers");
	return policy_hint_key(err, "ask for less (-b)", "buffer_memory");
}

/* Each request looks at all of them, and only root can remove one. */
static int policy_check_kept(const struct spool_total *kept, struct error *err)
{
	if (kept->count >= USER_KEPT_MAX)
		error_set(err, -EDQUOT,
			  "%u of your recordings could not be written out and are kept, which is "
			  "the limit",
			  kept->count);
	else if (kept->all_users >= USERS_KEPT_MAX)
		error_set(err, -EDQUOT,
			  "%u recordings of all users could not be written out and are kept, "
			  "which is the limit",
			  kept->all_users);
	else
		return 0;
	return error_hint(err, "'tracectl cancel FILE' discards one, as the failed export named "
			       "it; root can write them out and remove them: tracectl recover");
}

static int policy_hint_spool(struct error *err, const struct spool_total *kept)
{
	if (!kept->count)
		return policy_hint_key(err, "fetch or cancel some recordings (tracectl list)",
				       "spool_max");
	return policy_hint_key(err,
			       "fetch or cancel some recordings (tracectl list), or discard what "
			       "failed exports left: tracectl cancel FILE, as the failed export "
			       "named it",
			       "spool_max");
}

static int policy_check_spool(struct start_plan *p, const struct manager *m, uid_t uid,
			      struct error *err)
{
	const uid_t account = accounts_of(m->accounts, uid);
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct spool_total kept;
	int r;

	spool_total_of(m->config.spool_dir, m->accounts, account, &kept);
	r = policy_check_kept(&kept, err);
	if (r < 0 || !m->config.users.spool_max)
		return r;
	p->spool_elsewhere = kept.bytes;
	if (!policy_spool_exceeded(m, account, p->spool_elsewhere, 100))
		return 0;
	policy_put_bytes(&text, "", m->config.users.spool_max);
	error_set(err, -EDQUOT,
		  "your recordings that are not written out yet have reached your limit of %s",
		  buf_string(&text) ?: "space");
	return policy_hint_spool(err, &kept);
}

/* A flight recorder's end must fit: then nobody is in a position to make the buffers smaller. */
static int policy_check_ring(const struct start_plan *p, const struct manager *m, uid_t uid,
			     struct error *err)
{
	uint64_t max = policy_stream_max(m, uid);
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (!p->request.ring || !max || p->memory_bytes <= max)
		return 0;
	policy_put_bytes(&text, "a snapshot may have ", p->memory_bytes);
	policy_put_bytes(&text, ", which is all ring buffers, but \"spool_max\" allows ", max);
	error_set(err, -EDQUOT, "%s", buf_string(&text) ?: "the ring buffers exceed spool_max");
	return error_hint(err, "ask for less (-b), or raise \"spool_max\" in [%s] of traced.conf",
			  max == m->config.spool_max ? "limits" : "users");
}

/*
 * Checks the task's owner in procfs, which is root for setuid programs. The kernel stores pids:
 * the filter also applies to a later task with the same pid, and to whatever program the task
 * executes.
 */
static int policy_check_own_task(const struct manager *m, uid_t uid, pid_t pid, struct error *err)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%d", m->env.proc, (int)pid);
	if (stat(path, &st) < 0)
		return error_errno(err, -errno, "process %d", (int)pid);
	if (st.st_uid == uid)
		return 0;
	error_set(err, -EPERM, "process %d is not yours: you may not trace its functions",
		  (int)pid);
	return policy_hint_allow(err, "name your own (-P)", "functions = yes");
}

/* Refused to users: a trigger fires for any task, and may enable any event. */
static bool policy_has_command(const char *word)
{
	const char *colon = strchr(word, ':');

	return colon && (strncmp(colon, ":mod:", 5) != 0 || strchr(colon + 5, ':'));
}

static int policy_check_functions(const struct start_plan *p, const struct manager *m, uid_t uid,
				  struct error *err)
{
	const struct capture_functions *f = &p->request.functions;
	int r = 0;

	for (size_t i = 0; i < f->only.count; i++) {
		if (!policy_has_command(f->only.items[i]))
			continue;
		error_set(err, -EPERM, "'%s': only root may set triggers on functions",
			  f->only.items[i]);
		return error_hint(err, "leave the command out, or sudo tracectl ...");
	}
	if (p->start->n_functions + p->start->n_functions_not > USER_FUNCTIONS_MAX) {
		error_set(err, -E2BIG, "more than %u names or globs of functions",
			  USER_FUNCTIONS_MAX);
		return error_hint(err, "only root may have more: the kernel looks at all its "
				       "functions for each");
	}
	/* There is one list for all recordings: it would cut root's. */
	if (f->roots.count || f->depth) {
		error_set(err, -EPERM,
			  "only root may use -g and --max-graph-depth: they hold for "
			  "all recordings");
		return error_hint(err, "choose functions with -l, or sudo tracectl ...");
	}
	/* Threads of other tracers take time from every CPU, and their settings are global. */
	if (f->tracer && strcmp(f->tracer, "function") != 0 &&
	    strcmp(f->tracer, "function_graph") != 0) {
		error_set(err, -EPERM, "only root may use the tracer '%s'", f->tracer);
		return error_hint(err, "sudo tracectl ...");
	}
	if (!(f->tracer || f->only.count || f->never.count) ||
	    m->config.users.functions == USER_FUNCTIONS_YES)
		return 0;
	if (m->config.users.functions == USER_FUNCTIONS_NO) {
		error_set(err, -EPERM, "only root may trace functions here");
		return policy_hint_allow(err, "", "functions = own");
	}
	if (!p->request.pid_count && !p->request.process_count) {
		error_set(err, -EPERM, "only root may trace the functions of all processes");
		return policy_hint_allow(err, "name your own (-P PID, or -F -- COMMAND)",
					 "functions = yes");
	}
	for (size_t i = 0; i < p->request.pid_count && r >= 0; i++)
		r = policy_check_own_task(m, uid, p->request.pids[i], err);
	for (size_t i = 0; i < p->request.process_count && r >= 0; i++)
		r = policy_check_own_task(m, uid, p->request.processes[i], err);
	return r;
}

/* Refuses options that reach beyond the recording's instance, or show addresses of any process. */
static int policy_check_options(const struct start_plan *p, const struct manager *m, uid_t uid,
				struct error *err)
{
	static const char *const global[] = { "trace_printk_dest", "copy_trace_marker" };

	for (size_t i = 0; i < p->request.options.count; i++) {
		const char *option = p->request.options.items[i];

		for (size_t g = 0; g < ARRAY_SIZE(global); g++)
			if (strcmp(option, global[g]) == 0)
				return error_set(
					err, -EPERM,
					"only root may set the trace option '%s': it redirects "
					"other users' output",
					option);
		if ((strcmp(option, "userstacktrace") != 0 && strcmp(option, "sym-userobj") != 0) ||
		    user_list_has(&m->config.users.raw_addresses, uid))
			continue;
		error_set(err, -EPERM,
			  "only root may set the trace option '%s': it shows addresses of any "
			  "process",
			  option);
		return policy_hint_allow(err, "", "raw_addresses = yes");
	}
	return 0;
}

static int policy_check_rights(const struct start_plan *p, const struct manager *m, uid_t uid,
			       struct error *err)
{
	/*
	 * Probe arguments can read any memory, and probe paths are opened with the daemon's
	 * rights.
	 */
	if (p->request.probe_count) {
		error_set(err, -EPERM, "only root may make probes");
		return error_hint(err,
				  "sudo tracectl ...; or let root make them in kprobe_events, and "
				  "record them with -e kprobes:NAME");
	}
	/* Samples contain code addresses of all processes. */
	if (p->request.sampling.hz && !user_list_has(&m->config.users.raw_addresses, uid)) {
		error_set(err, -EPERM, "only root may sample what each CPU runs");
		return policy_hint_allow(err, "", "raw_addresses = yes");
	}
	if (p->request.top_level && !m->config.users.top_level) {
		error_set(err, -EPERM, "only root may take the top-level buffer");
		return policy_hint_allow(err, "", "top_level = yes");
	}
	return 0;
}

static size_t policy_glob_bytes(const char *glob)
{
	return glob[strcspn(glob, "*?[")] ? strlen(glob) : 0;
}

static int policy_check_globs(const struct start_plan *p, struct error *err)
{
	const Traced__Control__Start *start = p->start;
	size_t bytes = 0;

	for (size_t i = 0; i < start->n_events; i++)
		bytes += policy_glob_bytes(start->events[i]->glob);
	for (size_t i = 0; i < start->n_triggers; i++)
		bytes += policy_glob_bytes(start->triggers[i]->event);
	for (size_t i = 0; i < start->n_shed; i++)
		bytes += policy_glob_bytes(start->shed[i]);
	if (bytes <= USER_GLOBS_BYTES_MAX)
		return 0;
	error_set(err, -E2BIG, "globs of events of more than %u bytes together",
		  USER_GLOBS_BYTES_MAX);
	return error_hint(err, "name systems, as in -e sched");
}

/* Copies the rules: the worker reads them while the configuration may change. */
static int policy_set_bounds(struct start_plan *p, const struct user_rules *rules, uid_t uid,
			     struct error *err)
{
	struct capture_event_bounds *b = &p->request.bounds;
	int r = string_list_copy(&p->events_allowed, &rules->events_allowed);

	if (r >= 0)
		r = string_list_copy(&p->events_denied, &rules->events_denied);
	if (r < 0)
		return error_errno(err, r, "session");
	b->only = (struct capture_words){ (const char *const *)p->events_allowed.items,
					  p->events_allowed.count };
	b->never = (struct capture_words){ (const char *const *)p->events_denied.items,
					   p->events_denied.count };
	b->hide_addresses = !user_list_has(&rules->raw_addresses, uid);
	return 0;
}

int policy_check_start(struct start_plan *p, const struct manager *m, uid_t uid, struct error *err)
{
	uint64_t each = sampler_ring_bytes(p->request.sampling.hz);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int r;

	if (__builtin_add_overflow(p->request.buffer_bytes, each, &each) ||
	    __builtin_mul_overflow(each, (uint64_t)MAX(cpus, 1L), &p->memory_bytes) ||
	    __builtin_add_overflow(p->memory_bytes, hists_memory(&p->request.hists),
				   &p->memory_bytes))
		p->memory_bytes = UINT64_MAX;
	if (__builtin_add_overflow(p->memory_bytes, p->request.sql_count * SYNTHETIC_MEMORY,
				   &p->memory_bytes))
		p->memory_bytes = UINT64_MAX;
	p->request.copies_marks = policy_trusts(uid);
	p->request.functions.names_max = policy_trusts(uid) ? 0 : USER_FUNCTIONS_MAX;
	r = policy_check_ring(p, m, uid, err);
	if (r < 0 || policy_trusts(uid))
		return r;
	r = policy_check_rights(p, m, uid, err);
	if (r >= 0)
		r = policy_check_globs(p, err);
	if (r >= 0)
		r = policy_check_functions(p, m, uid, err);
	if (r >= 0)
		r = policy_check_options(p, m, uid, err);
	if (r >= 0)
		r = policy_check_sessions(m, uid, err);
	if (r >= 0)
		r = policy_check_memory(p, m, uid, err);
	if (r >= 0)
		r = policy_check_spool(p, m, uid, err);
	return r < 0 ? r : policy_set_bounds(p, &m->config.users, uid, err);
}

int policy_check_exporters(const struct manager *m, uid_t account, struct error *err)
{
	unsigned users, own = leaving_count(m->leaving, account, &users);

	if (policy_trusts(account) || (own < USER_LEAVING_MAX && users < USERS_LEAVING_MAX))
		return 0;
	if (own < USER_LEAVING_MAX)
		return error_set(err, -EUSERS, "%u exporters of all users do not end", users);
	error_set(err, -EUSERS, "%u of your exporters do not end", own);
	return error_hint(err, "the file servers behind their outputs do not answer");
}

int policy_check_output(const struct manager *m, uid_t uid, const Traced__Control__Output *output,
			bool counts_only, struct error *err)
{
	const struct export_format *format = export_format_find(output->format, NULL);

	if (policy_trusts(uid) || user_list_has(&m->config.users.raw_addresses, uid))
		return 0;
	if (output->raw_addresses)
		error_set(err, -EPERM, "only root may see the kernel's addresses");
	else if (format && format->raw_records && !(counts_only && format->recording))
		error_set(err, -EPERM, "only root may write a .%s: it contains kernel addresses",
			  format->name);
	else
		return 0;
	return policy_hint_allow(err,
				 "write .json, .pftrace or .txt, without --raw-addresses; reports "
				 "and top read a .traced",
				 "raw_addresses = yes");
}

/* The lower of two limits, where 0 means none. */
static uint64_t policy_lower(uint64_t a, uint64_t b)
{
	return a && b ? MIN(a, b) : a ?: b;
}

uint64_t policy_duration_max(const struct manager *m, uid_t uid, const char **ret_section)
{
	uint64_t all = m->config.duration_max, user = m->config.users.duration_max;
	uint64_t max = policy_trusts(uid) ? all : policy_lower(all, user);

	*ret_section = max == all ? "limits" : "users";
	return max;
}

uint64_t policy_min_free(const struct manager *m, uid_t uid)
{
	return policy_trusts(uid) ? m->config.min_free : 2 * m->config.min_free;
}

uint64_t policy_stream_max(const struct manager *m, uid_t uid)
{
	return policy_trusts(uid) ? m->config.spool_max
				  : policy_lower(m->config.spool_max, m->config.users.spool_max);
}

static uint64_t policy_spool_used(const struct manager *m, uid_t account)
{
	const struct session *s;
	const struct job *j;
	uint64_t used = 0;

	TAILQ_FOREACH(s, &m->sessions, list)
	used += s->account == account && s->spool.fd >= 0 ? spool_bytes(&s->spool) : 0;
	TAILQ_FOREACH(j, &m->jobs, list)
	used += j->account == account && j->spool.fd >= 0 ? spool_bytes(&j->spool) : 0;
	return used + leaving_bytes(m->leaving, account);
}

bool policy_spool_exceeded(const struct manager *m, uid_t account, uint64_t elsewhere,
			   unsigned percent)
{
	uint64_t max = m->config.users.spool_max;

	return max && !policy_trusts(account) &&
	       elsewhere + policy_spool_used(m, account) > max / 100 * percent;
}

bool policy_may_keep(const struct manager *m, uid_t account, const struct spool *spool)
{
	uint64_t max = m->config.users.spool_max;

	return !max || policy_trusts(account) ||
	       spool_bytes_of(m->config.spool_dir, m->accounts, account) + spool_bytes(spool) <=
		       max;
}

/* Snapshots and followers of a recording. Other exports of a session come one after the other. */
static bool policy_is_look(const struct job *j)
{
	return j->kind == JOB_SNAPSHOT || (j->output && j->output->from_now);
}

int policy_check_looks(const struct manager *m, uid_t uid, struct error *err)
{
	const uid_t account = accounts_of(m->accounts, uid);
	const struct job *j;
	unsigned count = 0;

	TAILQ_FOREACH(j, &m->jobs, list)
	count += j->account == account && policy_is_look(j);
	if (policy_trusts(uid) || count < LOOKS_MAX)
		return 0;
	error_set(err, -EBUSY, "%u exports of your running recordings are the limit", LOOKS_MAX);
	return error_hint(err, "wait for the end of one, or end a 'tracectl top'");
}

int policy_check_snapshot(const struct session *s, struct error *err)
{
	const struct manager *m = s->manager;
	uint64_t max = m->config.users.spool_max, used, held;
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct spool_total kept;
	int r;

	if (policy_trusts(s->uid))
		return 0;
	spool_total_of(m->config.spool_dir, m->accounts, s->account, &kept);
	/* Others' recordings hinder no snapshot, and a recorder's end keeps what it holds. */
	kept.all_users = 0;
	r = session_records(s) ? policy_check_kept(&kept, err) : 0;
	if (r < 0 || !max)
		return r;
	if (draining_count_held(s->draining, &held) < 0 || held > s->memory_bytes)
		held = s->memory_bytes;
	used = kept.bytes + policy_spool_used(m, s->account);
	if (used <= max && held <= max - used)
		return 0;
	policy_put_bytes(&text, "the ring buffers may hold ", held);
	policy_put_bytes(&text, ", and your recordings that are not written out yet have ", used);
	policy_put_bytes(&text, ": together more than your limit of ", max);
	error_set(err, -EDQUOT, "%s", buf_string(&text) ?: "you have reached your limit of space");
	return policy_hint_spool(err, &kept);
}

void policy_spool_kept(struct manager *m, uid_t account)
{
	uint64_t elsewhere = spool_bytes_of(m->config.spool_dir, m->accounts, account);
	struct session *s;

	TAILQ_FOREACH(s, &m->sessions, list)
	if (s->account == account)
		s->spool_elsewhere = elsewhere;
}
