/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The log of the daemon and the agent. Only daemon/service and agent log above debug level;
 * libraries return errors. If stderr is the journal's stream, messages go to the journal with
 * fields. Otherwise they go to stderr: with "<n>" prefixes under a service manager, without on a
 * terminal.
 */
#pragma once

#include <stdbool.h>
#include <syslog.h>

#include "base/cleanup.h"

struct log_fields {
	const char *session;	 /* SESSION=, or NULL */
	int cpu;		 /* CPU=, or -1 */
	int error;		 /* ERRNO=, positive, or 0 */
	const char *message_id;	 /* MESSAGE_ID=, for the journal's catalog; or NULL */
	const char *const *more; /* "NAME=value", at most LOG_MORE_MAX, ended by NULL; or NULL */
	bool keep;		 /* see log_keep_records() */
};
#define LOG_MORE_MAX 12

void log_set_level(int max_level);
/* A daemon that serves a command on a terminal turns prefixes off. */
void log_set_prefix(bool prefix);

/*
 * For a program whose stderr is a user's terminal: messages with `keep` go to the journal instead,
 * whatever their level. Without a journal they are dropped.
 */
void log_keep_records(void);

void log_write(int level, const struct log_fields *fields, const char *fmt, ...) _printf_(3, 4);

#define log_info(...) log_write(LOG_INFO, NULL, __VA_ARGS__)
#define log_notice(...) log_write(LOG_NOTICE, NULL, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, NULL, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERR, NULL, __VA_ARGS__)

/* Allows `burst` messages per interval from one place, and logs how many were suppressed. */
struct log_limit {
	unsigned burst, interval_s;
	unsigned said, held;
	unsigned long long since_ns;
};
#define LOG_LIMIT_INIT                                                                             \
	{                                                                                          \
		.burst = 5, .interval_s = 30                                                       \
	}
/* True if this message may be logged. */
bool log_limit_pass(struct log_limit *limit);
