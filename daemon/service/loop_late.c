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
static struct {
	uint64_t began_ns; /* 0: none runs */
	bool told;	   /* while it runs */
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
	doing.told = false;
	pthread_mutex_unlock(&lock);
	return now;
}

/* The lock is held. */
static void loop_late_tell(const char *begin, const char *preposition, uint64_t took_ns)
{
	log_notice("the event loop %s %u ms %s%s%s%s", begin, (unsigned)(took_ns / NSEC_PER_MSEC),
		   preposition, doing.what ?: "something", doing.what && *doing.name ? " " : "",
		   doing.what ? doing.name : "");
}

void loop_late_look(void)
{
	static struct log_limit limit = LOG_LIMIT_INIT;
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&lock);
	if (doing.began_ns && !doing.told && now >= doing.began_ns + LATE_NS &&
	    log_limit_pass(&limit)) {
		doing.told = true;
		loop_late_tell("has been busy for", "with ", now - doing.began_ns);
	}
	pthread_mutex_unlock(&lock);
}

void loop_late_end(uint64_t began_ns)
{
	static struct log_limit limit = LOG_LIMIT_INIT;
	uint64_t took = now_ns(CLOCK_MONOTONIC) - began_ns;

	pthread_mutex_lock(&lock);
	doing.began_ns = 0;
	if (unlikely(took >= LATE_NS) && log_limit_pass(&limit))
		loop_late_tell("took", "for ", took);
	pthread_mutex_unlock(&lock);
}
