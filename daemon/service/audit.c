/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/audit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/plural.h"
#include "daemon/service/policy.h"

void audit_comm(const char *proc, pid_t pid, char ret[static 32])
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[64];

	snprintf(path, sizeof(path), "%s/%d/comm", proc, (int)pid);
	snprintf(ret, 32, "?");
	if (read_file_at(AT_FDCWD, path, 64, &text) == 0 && text.len > 1)
		snprintf(ret, 32, "%.*s", (int)text.len - 1, text.data);
}

/* journald's fields beside the text. */
struct details {
	char text[10][64];
	const char *list[11];
	size_t count;
};

static void _printf_(2, 3) audit_add(struct details *d, const char *fmt, ...)
{
	char *to = d->text[d->count];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(to, sizeof(d->text[0]), fmt, ap);
	va_end(ap);
	d->list[d->count++] = to;
}

static void audit_add_client(struct details *d, uid_t uid, pid_t pid, const char *comm)
{
	audit_add(d, "CLIENT_UID=%u", uid);
	audit_add(d, "CLIENT_PID=%d", (int)pid);
	audit_add(d, "CLIENT_COMM=%s", comm);
}

void audit_started(const struct session *s)
{
	struct details d = { 0 };
	struct log_fields fields = { .session = s->name,
				     .cpu = -1,
				     .message_id = AUDIT_STARTED,
				     .more = d.list,
				     .keep = true };
	_cleanup_buf_ struct buf text = BUF_INIT;

	audit_add_client(&d, s->uid, s->pid, s->comm);
	buf_printf(&text, "%s: uid %u, pid %d (%s), records %s", s->name, s->uid, (int)s->pid,
		   s->comm, s->what);
	if (s->duration_ns) {
		buf_puts(&text, ", for ");
		format_duration(s->duration_ns, &text);
	}
	log_write(LOG_INFO, &fields, "%s", buf_string(&text) ?: s->name);
}

static void audit_losses(const struct session *s, const Traced__Control__Session *last)
{
	struct details d = { 0 };
	struct log_fields fields = { .session = s->name,
				     .cpu = -1,
				     .message_id = AUDIT_LOST,
				     .more = d.list,
				     .keep = true };

	audit_add(&d, "LOST=%" PRIu64, last->lost);
	log_write(LOG_WARNING, &fields,
		  "%s: %" PRIu64 " of %" PRIu64 " events %s lost: the ring buffers of %" PRIu64
		  " KiB per CPU were too small, or too many events were recorded",
		  s->name, last->lost, last->lost + last->events, plural(last->lost, "was", "were"),
		  last->buffer_bytes / 1024);
}

const char *audit_reason(enum capture_end reason)
{
	static const char *const names[] = {
		[CAPTURE_END_STOPPED] = "stopped",
		[CAPTURE_END_DURATION] = "its duration is over",
		[CAPTURE_END_COMMAND_EXITED] = "its command has ended",
		[CAPTURE_END_SHUTDOWN] = "the daemon stops",
		[CAPTURE_END_NO_SPACE] = "out of space",
		[CAPTURE_END_FAILED] = "failed",
		[CAPTURE_END_TRIGGER] = "a trigger ended it",
	};

	return reason < ARRAY_SIZE(names) && names[reason] ? names[reason] : "ended";
}

void audit_ended(const struct session *s, const char *how)
{
	static const Traced__Control__Session nothing = TRACED__CONTROL__SESSION__INIT;
	const Traced__Control__Session *last = s->last ?: &nothing;
	struct details d = { 0 };
	struct log_fields fields = { .session = s->name,
				     .cpu = -1,
				     .message_id = AUDIT_ENDED,
				     .more = d.list,
				     .keep = true };
	_cleanup_buf_ struct buf text = BUF_INIT;

	audit_add_client(&d, s->uid, s->pid, s->comm);
	audit_add(&d, "ELAPSED_USEC=%" PRIu64, last->elapsed_ns / NSEC_PER_USEC);
	audit_add(&d, "EVENTS=%" PRIu64, last->events);
	audit_add(&d, "LOST=%" PRIu64, last->lost);
	audit_add(&d, "BYTES=%" PRIu64, last->bytes);
	audit_add(&d, "REASON=%s", how);
	buf_printf(&text, "%s: %s; uid %u recorded ", s->name, how, s->uid);
	format_duration(last->elapsed_ns, &text);
	buf_printf(&text, ", %" PRIu64 " event%s, %" PRIu64 " lost, ", last->events,
		   plural_s(last->events), last->lost);
	format_bytes(last->bytes, &text);
	log_write(LOG_INFO, &fields, "%s", buf_string(&text) ?: s->name);
	if (last->lost)
		audit_losses(s, last);
}

/* Limits the refusals of each user, so that no user's refusals hide another's. */
static bool audit_refusal_passes(uid_t account)
{
	static struct {
		uid_t account;
		struct log_limit limit;
	} users[64];
	size_t chosen = 0;

	for (size_t i = 0; i < ARRAY_SIZE(users); i++) {
		/* Reuse an unused entry, otherwise the one whose interval is oldest. */
		if (users[i].limit.since_ns < users[chosen].limit.since_ns)
			chosen = i;
		if (users[i].account == account && users[i].limit.burst) {
			chosen = i;
			break;
		}
	}
	if (users[chosen].account != account || !users[chosen].limit.burst) {
		users[chosen].account = account;
		users[chosen].limit = (struct log_limit){ .burst = 20, .interval_s = 30 };
	}
	return log_limit_pass(&users[chosen].limit);
}

static void audit_refusal(const struct manager *m, uid_t uid, uid_t account, pid_t pid,
			  const struct error *err)
{
	struct details d = { 0 };
	struct log_fields fields = {
		.cpu = -1, .error = err->code, .message_id = AUDIT_REFUSED, .more = d.list
	};
	char comm[32];

	if ((err->code != EPERM && err->code != EUSERS && err->code != EDQUOT) ||
	    m->options.private || !audit_refusal_passes(account))
		return;
	audit_comm(m->env.proc, pid, comm);
	audit_add_client(&d, uid, pid, comm);
	log_write(LOG_NOTICE, &fields, "refused to uid %u, pid %d (%s): %s", uid, (int)pid, comm,
		  err->message ?: strerror(err->code));
}

void audit_refused(const struct connection *c, const struct error *err)
{
	audit_refusal(c->manager, c->uid, c->account, c->pid, err);
}

void audit_not_armed(const struct session *s, const struct error *err)
{
	/* A failure of root's recording is no refusal of ours. */
	if (!policy_trusts(s->uid))
		audit_refusal(s->manager, s->uid, s->account, s->pid, err);
}
