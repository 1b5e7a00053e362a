/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/service/loop_late.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/io.h"
#include "base/log.h"
#include "daemon/service/loop.h"

#define LATE_NS (100 * NSEC_PER_MSEC)
#define NAME_BYTES 64

/* The running callback sets it. Each one does, so it must be cheap. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct doing {
	uint64_t began_ns; /* 0: none runs */
	bool reported;	   /* while it runs */
	const char *what;  /* NULL: unknown */
	char name[NAME_BYTES];
} doing;

void loop_doing(const char *what, const char *name)
{
	pthread_mutex_lock(&lock);
	doing.what = what;
	snprintf(doing.name, sizeof(doing.name), "%s", name ?: "");
	pthread_mutex_unlock(&lock);
}

uint64_t loop_late_begin(void)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&lock);
	doing.what = NULL;
	doing.began_ns = now;
	doing.reported = false;
	pthread_mutex_unlock(&lock);
	return now;
}

/* Logs a copy: who waits for the lock must not wait for the journal. */
static void loop_late_report(const struct doing *d, const char *begin, const char *preposition,
			     uint64_t took_ns)
{
	log_notice("the event loop %s %u ms %s%s%s%s", begin, (unsigned)(took_ns / NSEC_PER_MSEC),
		   preposition, d->what ?: "something", d->what && *d->name ? " " : "",
		   d->what ? d->name : "");
}

void loop_late_look(void)
{
	static struct log_limit limit = LOG_LIMIT_INIT;
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	struct doing copy;
	bool reports;

	pthread_mutex_lock(&lock);
	reports = doing.began_ns && !doing.reported && now >= doing.began_ns + LATE_NS &&
		  log_limit_pass(&limit);
	doing.reported |= reports;
	copy = doing;
	pthread_mutex_unlock(&lock);
	if (reports)
		loop_late_report(&copy, "has been busy for", "with ", now - copy.began_ns);
}

void loop_late_end(uint64_t began_ns)
{
	static struct log_limit limit = LOG_LIMIT_INIT;
	uint64_t took = now_ns(CLOCK_MONOTONIC) - began_ns;
	struct doing copy;

	pthread_mutex_lock(&lock);
	doing.began_ns = 0;
	copy = doing;
	pthread_mutex_unlock(&lock);
	if (unlikely(took >= LATE_NS) && log_limit_pass(&limit))
		loop_late_report(&copy, "took", "for ", took);
}
