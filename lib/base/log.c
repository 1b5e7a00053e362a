/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#if HAVE_SYSTEMD
#include <systemd/sd-journal.h>
#endif

#include "base/io.h"
#include "base/plural.h"
#include "base/visible.h"

static int max_level = LOG_INFO;
static bool prefixed, keeps_records;

void log_set_level(int level)
{
	max_level = level;
}

void log_set_prefix(bool prefix)
{
	prefixed = prefix;
}

void log_keep_records(void)
{
	keeps_records = true;
}

/* systemd.exec(5): JOURNAL_STREAM holds device and inode of the stream passed as stderr. */
static bool log_stderr_is_journal(void)
{
	static int known = -1;
	const char *text = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	if (known < 0)
		known = text && sscanf(text, "%llu:%llu", &device, &inode) == 2 &&
			fstat(STDERR_FILENO, &st) == 0 && st.st_dev == (dev_t)device &&
			st.st_ino == (ino_t)inode;
	return known;
}

#if HAVE_SYSTEMD
static void log_write_journal(int level, const struct log_fields *f, const char *text)
{
	char message[2048], priority[32], session[256], cpu[32], error[32], id[64];
	struct iovec iov[6 + LOG_MORE_MAX];
	int n = 0;

	snprintf(message, sizeof(message), "MESSAGE=%s", text);
	snprintf(priority, sizeof(priority), "PRIORITY=%d", level);
	iov[n++] = (struct iovec){ message, strlen(message) };
	iov[n++] = (struct iovec){ priority, strlen(priority) };
	if (f && f->session) {
		snprintf(session, sizeof(session), "SESSION=%s", f->session);
		iov[n++] = (struct iovec){ session, strlen(session) };
	}
	if (f && f->cpu >= 0) {
		snprintf(cpu, sizeof(cpu), "CPU=%d", f->cpu);
		iov[n++] = (struct iovec){ cpu, strlen(cpu) };
	}
	if (f && f->error) {
		snprintf(error, sizeof(error), "ERRNO=%d", f->error);
		iov[n++] = (struct iovec){ error, strlen(error) };
	}
	if (f && f->message_id) {
		snprintf(id, sizeof(id), "MESSAGE_ID=%s", f->message_id);
		iov[n++] = (struct iovec){ id, strlen(id) };
	}
	for (int i = 0; f && f->more && f->more[i] && i < LOG_MORE_MAX; i++)
		iov[n++] = (struct iovec){ (char *)(uintptr_t)f->more[i], strlen(f->more[i]) };
	sd_journal_sendv(iov, n);
}
static void log_write_record(int level, const struct log_fields *f, const char *text)
{
	log_write_journal(level, f, text);
}
#else
/* The journal's stream accepts lines with a prefix too; only the fields are lost. */
static void log_write_journal(int level, const struct log_fields *f _unused_, const char *text)
{
	dprintf(STDERR_FILENO, "<%d>%s\n", level, text);
}

static void log_write_record(int level, const struct log_fields *f _unused_, const char *text)
{
	syslog(LOG_DAEMON | level, "%s", text);
}
#endif

void log_write(int level, const struct log_fields *fields, const char *fmt, ...)
{
	_cleanup_buf_ struct buf visible = BUF_INIT;
	char raw[1900];
	const char *text;
	va_list ap;

	bool record = keeps_records && fields && fields->keep;

	if (level > max_level && !record)
		return;
	va_start(ap, fmt);
	vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	buf_visible(&visible, raw, sizeof(raw));
	text = buf_string(&visible) ?: "out of memory";
	if (record)
		log_write_record(level, fields, text);
	else if (log_stderr_is_journal())
		log_write_journal(level, fields, text);
	else if (prefixed)
		dprintf(STDERR_FILENO, "<%d>%s\n", level, text);
	else
		dprintf(STDERR_FILENO, "traced: %s\n", text);
}

bool log_limit_pass(struct log_limit *limit)
{
	unsigned long long now = now_ns(CLOCK_MONOTONIC);

	if (!limit->since_ns || now - limit->since_ns >= limit->interval_s * NSEC_PER_SEC) {
		if (limit->held)
			log_notice("%u similar message%s suppressed", limit->held,
				   plural(limit->held, " was", "s were"));
		limit->since_ns = now;
		limit->said = limit->held = 0;
	}
	if (limit->said < limit->burst) {
		limit->said++;
		return true;
	}
	limit->held++;
	return false;
}
