/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trigger_run.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/io.h"
#include "base/json.h"
#include "base/parse.h"
#include "destination.h"
#include "firings.h"
#include "formats/formats.h"
#include "trigger_files.h"
#include "trigger_hook.h"

#define AFTER_NS NSEC_PER_SEC
#define AT_MOST 1
#define AT_MOST_NS (600 * NSEC_PER_SEC)
#define KEEP 10
#define SIZE_MAX_BYTES (UINT64_C(1) << 30)
/* How often the daemon is asked for losses, and a hook looked after. */
#define LOST_MS 1000
#define HOOK_MS 100
/* Firings of a condition that are marked and logged with a snapshot; further ones are counted. */
#define REPORTED_MAX 100

/* Limits are a condition's own: one that is met all the time does not hide others. */
struct followed {
	unsigned reported; /* firings of this snapshot */
	uint64_t *recent;  /* owned; times of the last at_most snapshots, a ring */
	unsigned recent_count, recent_next;
	uint64_t lost; /* events, when it was met last; for WATCH_LOST */
};

struct follower {
	const struct trigger_run *run;
	const struct triggers *t;
	struct firings firings;
	const char *ended; /* the session that has ended, or NULL */
	/* The snapshot that waits for `due`. */
	bool pending;
	size_t condition;
	uint64_t at, due; /* on the boot clock */
	struct followed conditions[WATCH_CONDITIONS_MAX];
	struct buf marks;    /* of its firings, where they happened; Trace Event Format */
	uint64_t unreported; /* firings with the snapshot, beyond REPORTED_MAX */
	/* The last snapshot. Events up to `taken` are in it, or in one before it. */
	char *last; /* owned; NULL: none */
	struct export_result result;
	uint64_t taken;	  /* on the boot clock */
	uint64_t skipped; /* firings since the last snapshot that were too many */
	unsigned at_most;
	uint64_t lost_next;
	struct trigger_hook hook;
};

static void follower_log(const char *fmt, ...) _printf_(1, 2);
static void follower_log(const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	char when[32] = "";
	time_t now = time(NULL);
	struct tm tm;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	cli_line(stderr, "%s %s", when, text ?: "out of memory");
}

/* Puts a mark into the flight recorder. */
static void follower_mark(struct follower *f, const char *text)
{
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Mark mark = TRACED__CONTROL__MARK__INIT;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	_cleanup_error_ struct error err = ERROR_INIT;

	mark.text = (char *)(uintptr_t)text;
	mark.session = (char *)(uintptr_t)f->run->session;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_MARK;
	request.mark = &mark;
	if (link_call(f->run->link, &request, NULL, 0, &reply, &err) < 0)
		follower_log("no mark: %s", err.message ?: "?");
}

/*
 * Whether the last snapshot has what happened then, or one before it. Each CPU's buffer was emptied
 * at another time, and the last event from it tells when, if the recorder has the boot clock, too.
 */
static bool follower_has(const struct follower *f, const Traced__Control__Firing *m)
{
	const struct export_result *r = &f->result;
	uint64_t until = f->taken;

	for (size_t i = 0; i < r->ledger_count && !strcmp(r->clock, "boot"); i++)
		if (m->cpu < 0 || r->ledger[i].cpu == (unsigned)m->cpu)
			until = MAX(until, r->ledger[i].last_ts);
	return f->last && m->at_ns <= until;
}

/* The mark in the recorder comes late; this one is merged at its place. */
static void follower_put_mark(struct follower *f, const Traced__Control__Firing *m,
			      const char *text)
{
	struct buf *out = &f->marks;

	buf_putc(out, out->len ? ',' : '[');
	buf_puts(out, "{\"ph\":\"i\",\"s\":\"g\"");
	json_put_string_key(out, "name", text);
	json_put_i64_key(out, "pid", m->tid);
	json_put_i64_key(out, "tid", m->tid);
	json_put_key(out, "ts");
	buf_printf(out, "%" PRIu64 ".%03" PRIu64 "}", m->at_ns / 1000, m->at_ns % 1000);
}

/* in: the snapshot that has it already, which gets no mark any more; NULL: it is due. */
static void follower_tell(struct follower *f, const Traced__Control__Firing *m, const char *in)
{
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (f->conditions[m->condition].reported == REPORTED_MAX) {
		f->unreported++;
		return;
	}
	f->conditions[m->condition].reported++;
	buf_puts(&text, "trigger: ");
	firing_put(f->t, m, &text);
	if (!buf_string(&text))
		return;
	if (in) {
		follower_log("%s, in %s", text.data, in);
		return;
	}
	follower_mark(f, text.data);
	follower_put_mark(f, m, text.data);
	follower_log("%s", text.data);
}

static bool follower_may_fire(const struct follower *f, struct followed *c)
{
	const uint64_t within = f->t->o->at_most_ns ?: AT_MOST_NS, now = now_ns(CLOCK_BOOTTIME);

	if (c->recent_count == f->at_most && now - c->recent[c->recent_next] < within)
		return false;
	c->recent[c->recent_next] = now;
	c->recent_next = (c->recent_next + 1) % f->at_most;
	c->recent_count = MIN(c->recent_count + 1, f->at_most);
	return true;
}

static void follower_log_skipped(struct follower *f)
{
	if (f->skipped)
		follower_log("firings without a snapshot (--at-most): %" PRIu64, f->skipped);
	f->skipped = 0;
}

static void follower_log_unreported(struct follower *f)
{
	if (f->unreported)
		follower_log("firings without a mark: %" PRIu64, f->unreported);
	f->unreported = 0;
}

/* A firing has a snapshot of its own, or is in one that is due, or in one that was taken before. */
static void follower_fire(const Traced__Control__Firing *m, void *data)
{
	struct follower *f = data;
	const bool has = follower_has(f, m);

	if (m->more) {
		*(f->pending || has ? &f->unreported : &f->skipped) += m->more;
		return;
	}
	if (has) {
		follower_tell(f, m, f->last);
		return;
	}
	if (!f->pending) {
		if (!follower_may_fire(f, &f->conditions[m->condition])) {
			f->skipped++;
			return;
		}
		f->pending = true;
		f->condition = m->condition;
		f->at = m->at_ns;
		f->due = m->at_ns + (f->t->o->after_ns ?: AFTER_NS);
		for (size_t i = 0; i < f->t->count; i++)
			f->conditions[i].reported = 0;
		buf_clear(&f->marks);
		follower_log_unreported(f);
		follower_log_skipped(f);
	}
	follower_tell(f, m, NULL);
}

/* Replies to the Attaches: that session has ended. */
static int follower_receive(struct follower *f, struct error *err)
{
	for (;;) {
		_cleanup_reply_ Traced__Control__Reply *reply = NULL;
		const char *ended;
		int r = control_client_receive(f->run->link->client, 0, &reply, err);

		if (r < 0)
			return link_explain(f->run->link, r, err);
		if (r == 0)
			return 0;
		if (reply->id != f->run->attach_id && reply->id != f->run->watch_id)
			continue;
		ended = reply->id == f->run->attach_id ? f->run->session : f->run->watch;
		if (reply->error)
			follower_log("%s: %s", ended, reply->error->message);
		/* If both have ended, the recorder's end matters. */
		if (f->ended != f->run->session)
			f->ended = ended;
	}
}

/* Losses of the flight recorder, and of the events of the conditions. */
static int follower_ask_lost(struct follower *f, uint64_t *ret, struct error *err)
{
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	int r;

	r = link_status(f->run->link, NULL, &reply, err);
	if (r < 0)
		return r;
	*ret = 0;
	for (size_t i = 0; i < reply->status->n_sessions; i++) {
		const Traced__Control__Session *s = reply->status->sessions[i];

		if (!strcmp(s->name, f->run->session) || !strcmp(s->name, f->run->watch))
			*ret += s->lost;
	}
	return 0;
}

static int follower_watch_lost(struct follower *f, struct error *err)
{
	uint64_t lost = 0;
	int r;

	if (!f->t->has_lost || now_ns(CLOCK_BOOTTIME) < f->lost_next)
		return 0;
	f->lost_next = now_ns(CLOCK_BOOTTIME) + LOST_MS * NSEC_PER_MSEC;
	r = follower_ask_lost(f, &lost, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < f->t->count; i++) {
		Traced__Control__Firing m = TRACED__CONTROL__FIRING__INIT;
		uint64_t more = lost - MIN(lost, f->conditions[i].lost);

		if (f->t->conditions[i].kind != WATCH_LOST || more <= f->t->conditions[i].above)
			continue;
		m.condition = (uint32_t)i;
		m.at_ns = now_ns(CLOCK_BOOTTIME);
		m.value = more;
		m.cpu = -1;
		f->conditions[i].lost = lost;
		follower_fire(&m, f);
	}
	return 0;
}

/* The time of the snapshot's first event; 0: none, or the recorder has another clock. */
static uint64_t follower_first_event(const struct export_result *r)
{
	uint64_t last = 0;

	for (size_t i = 0; i < r->ledger_count && !strcmp(r->clock, "boot"); i++)
		last = MAX(last, r->ledger[i].last_ts);
	return last - MIN(last, r->span_ns);
}

/* Says if the snapshot does not reach back to the event, or not as far as --before asks. */
static void follower_check_span(const struct follower *f, const struct outcome *outcome,
				uint64_t taken)
{
	const uint64_t wanted = f->t->o->before_ns + (taken - MIN(taken, f->at));
	_cleanup_buf_ struct buf text = BUF_INIT;

	if (f->at < follower_first_event(&outcome->result))
		follower_log("the snapshot begins after what met the condition: the recorder had "
			     "no event then, had another snapshot, or needs a larger -b");
	if (!f->t->o->before_ns || outcome->result.span_ns >= wanted)
		return;
	format_duration(outcome->result.span_ns, &text);
	buf_puts(&text, " of ");
	format_duration(wanted, &text);
	follower_log("the snapshot spans only %s: the recorder is young, had another snapshot, or "
		     "needs a larger -b",
		     buf_string(&text) ?: "?");
}

/* Has the marks merged into the snapshot, if its format has a place for them. */
static int follower_merge_marks(struct follower *f, struct destination *dest, struct error *err)
{
	struct merge_files *m = &dest->merges;
	int r;

	if (!f->marks.len || !export_format_has_marks(dest->format))
		return 0;
	buf_putc(&f->marks, ']');
	m->files[0] = (struct export_merge){ .fd = memfd_create("triggers", MFD_CLOEXEC),
					     .name = "the triggers' marks" };
	m->clocks[0] = "boottime";
	if (m->files[0].fd < 0)
		return error_errno(err, -errno, "%s", m->files[0].name);
	m->count = 1;
	r = buf_error(&f->marks);
	if (r == 0)
		r = write_full(m->files[0].fd, f->marks.data, f->marks.len);
	if (r == 0 && lseek(m->files[0].fd, 0, SEEK_SET) < 0)
		r = -errno;
	return r < 0 ? error_errno(err, r, "%s", m->files[0].name) : 0;
}

/* Firings of its time may still come. */
static int follower_remember(struct follower *f, const char *path, struct outcome *outcome,
			     uint64_t taken, struct error *err)
{
	char *last = strdup(path);

	if (!last)
		return error_errno(err, -ENOMEM, "snapshot");
	free(f->last);
	export_result_deinit(&f->result);
	f->last = last;
	f->result = outcome->result;
	f->taken = taken;
	outcome->result = (struct export_result){ 0 };
	return 0;
}

/* Writes the snapshot to path, which is in the current folder. */
static int follower_write(struct follower *f, const char *path, struct error *err)
{
	const struct options o = { .output = path, .format = f->t->o->format, .quiet = true };
	_cleanup_destination_ struct destination dest = DESTINATION_INIT;
	_cleanup_outcome_ struct outcome outcome = { 0 };
	_cleanup_buf_ struct buf files = BUF_INIT;
	_cleanup_reply_ Traced__Control__Reply *reply = NULL;
	Traced__Control__Request request = TRACED__CONTROL__REQUEST__INIT;
	Traced__Control__Snapshot snapshot = TRACED__CONTROL__SNAPSHOT__INIT;
	Traced__Control__Output output;
	uint64_t taken;
	int r;

	if (destination_open(&dest, &o, NULL))
		return error_set(err, -EIO, "the snapshot can't be written");
	r = follower_merge_marks(f, &dest, err);
	if (r < 0)
		return r;
	destination_fill(&dest, &o, &output);
	snapshot.session = (char *)(uintptr_t)f->run->session;
	snapshot.output = &output;
	request.verb_case = TRACED__CONTROL__REQUEST__VERB_SNAPSHOT;
	request.snapshot = &snapshot;
	taken = now_ns(CLOCK_BOOTTIME);
	r = link_call(f->run->link, &request, dest.fds, dest.fd_count, &reply, err);
	if (r < 0)
		return r;
	if (reply->body_case != TRACED__CONTROL__REPLY__BODY_FINISHED)
		return error_set(err, -EPROTO, "unexpected reply from traced");
	r = outcome_from_finished(&outcome, reply->finished, err);
	if (r == 0)
		r = destination_commit(&dest, &outcome, &files, err);
	if (r < 0)
		return r;
	outcome_tell(&outcome, &o);
	follower_check_span(f, &outcome, taken);
	return follower_remember(f, path, &outcome, taken, err);
}

/* A failed snapshot is logged; the conditions are followed on. */
static void follower_snapshot(struct follower *f)
{
	const struct options *o = f->t->o;
	const struct watch_condition *c = &f->t->conditions[f->condition];
	const uint64_t ago = now_ns(CLOCK_BOOTTIME) - MIN(f->at, now_ns(CLOCK_BOOTTIME));
	_cleanup_error_ struct error err = ERROR_INIT;
	_cleanup_buf_ struct buf path = BUF_INIT;
	const char *name = NULL;
	int r;

	f->pending = false;
	follower_log_unreported(f);
	buf_printf(&path, "%s/", f->t->folder);
	trigger_file_name(&path, f->run->session, now_ns(CLOCK_REALTIME) - ago, c, f->t->ending);
	if (buf_string(&path))
		name = path.data + strlen(f->t->folder) + 1;
	r = name ? follower_write(f, name, &err) : error_errno(&err, -ENOMEM, "snapshot");
	if (r < 0) {
		follower_log("%s: %s", buf_string(&path) ?: "?", err.message ?: "?");
		return;
	}
	follower_log("wrote %s", path.data);
	r = trigger_files_keep(".", f->run->session, f->t->ending, name, o->keep ?: KEEP,
			       o->max_size ?: SIZE_MAX_BYTES);
	if (r < 0)
		follower_log("%s: %s", f->t->folder, strerror(-r));
	if (!f->t->hook)
		return;
	r = trigger_hook_start(&f->hook, f->t->hook, path.data, f->run->session,
			       o->on.items[f->condition]);
	if (r < 0)
		follower_log("no hook for %s: %s", path.data,
			     r == -EBUSY ? "the one before still runs" : strerror(-r));
}

/* Until something is due. */
static int follower_timeout_ms(const struct follower *f)
{
	const uint64_t now = now_ns(CLOCK_BOOTTIME);
	int ms = f->t->has_lost ? LOST_MS : -1;

	if (f->hook.runs)
		ms = HOOK_MS;
	if (f->pending) {
		uint64_t left = f->due > now ? (f->due - now) / NSEC_PER_MSEC + 1 : 0;

		ms = ms < 0 ? (int)MIN(left, 3600000U) : (int)MIN(left, (uint64_t)ms);
	}
	return ms;
}

static int follower_turn(struct follower *f, struct error *err)
{
	struct pollfd fds[2] = {
		{ .fd = control_client_fd(f->run->link->client), .events = POLLIN },
		{ .fd = f->run->pipe, .events = POLLIN },
	};
	int r;

	if (poll(fds, ARRAY_SIZE(fds), follower_timeout_ms(f)) < 0 && errno != EINTR)
		return error_errno(err, -errno, "poll");
	trigger_hook_reap(&f->hook);
	if (fds[1].revents) {
		r = firings_read(&f->firings, follower_fire, f, err);
		if (r <= 0)
			f->ended = f->run->watch;
		if (r < 0)
			return r;
	}
	r = follower_watch_lost(f, err);
	if (r < 0)
		return r;
	if (f->pending && now_ns(CLOCK_BOOTTIME) >= f->due)
		follower_snapshot(f);
	/* Last: calls keep the replies that are not theirs. */
	return follower_receive(f, err);
}

static int follower_run(struct follower *f, struct error *err)
{
	int r = 0;

	f->at_most = f->t->o->at_most ?: AT_MOST;
	for (size_t i = 0; i < f->t->count; i++) {
		f->conditions[i].recent = calloc(f->at_most, sizeof(uint64_t));
		if (!f->conditions[i].recent)
			return error_errno(err, -ENOMEM, "triggers");
	}
	while (!f->ended && r == 0)
		r = follower_turn(f, err);
	return r;
}

int trigger_run(const struct trigger_run *run)
{
	struct follower f = { .run = run,
			      .t = run->triggers,
			      .firings = { run->triggers, run->pipe } };
	_cleanup_error_ struct error err = ERROR_INIT;
	const struct timespec pause = { .tv_nsec = HOOK_MS * (long)NSEC_PER_MSEC };
	int r = follower_run(&f, &err);

	if (r < 0)
		follower_log("%s", err.message ?: "?");
	follower_log("%s has ended%s", f.ended ?: "the process of the triggers",
		     f.ended == run->watch ? ": no condition is followed any more" : "");
	if (f.pending && f.ended == run->watch)
		follower_snapshot(&f);
	if (f.pending)
		follower_log("no snapshot was written");
	follower_log_unreported(&f);
	follower_log_skipped(&f);
	link_deinit(run->link);
	/* A hook may still read its snapshot. */
	while (!trigger_hook_reap(&f.hook))
		nanosleep(&pause, NULL);
	for (size_t i = 0; i < f.t->count; i++)
		free(f.conditions[i].recent);
	buf_deinit(&f.firings.in);
	buf_deinit(&f.marks);
	free(f.last);
	export_result_deinit(&f.result);
	return r < 0 ? CLI_FAILED : CLI_WHOLE;
}
