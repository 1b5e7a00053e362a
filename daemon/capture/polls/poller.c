/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "daemon/capture/polls/poller.h"

#include <inttypes.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/io.h"
#include "base/plural.h"
#include "base/thread.h"

#define STACK_BYTES (256U << 10)
/* For CPU time used, the thread sleeps this many times as long. */
#define REST_FACTOR 9

struct polled_source {
	struct poll_files files;
	uint64_t interval_ns, next_ns; /* next_ns: CLOCK_MONOTONIC */
	uint64_t skipped;
};

struct poller {
	struct polled_source sources[POLL_SOURCES];
	size_t count;
	pthread_t thread;
	bool runs;
	struct buf text, packed; /* the thread's */
	uint64_t rest_until_ns;
	pthread_mutex_t lock; /* protects the following */
	pthread_cond_t wake;
	bool ending;
	struct buf ready;  /* fields of traced.capture.Polls */
	uint64_t dropped;  /* readings that ready had no room for */
	uint64_t cpu_ns;   /* used by the thread, and not yet taken */
	struct buf moving; /* the recorder's */
};

static bool source_is_quick(enum poll_source source)
{
	return source != POLL_PROCESS_MEMORY && source != POLL_CPUFREQ && source != POLL_THERMAL;
}

/* Waits until then, or until the end. True: the end. */
static bool poller_wait(struct poller *p, uint64_t until_ns)
{
	const struct timespec until = { .tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
					.tv_nsec = (long)(until_ns % NSEC_PER_SEC) };
	bool ending;
	int e = 0;

	pthread_mutex_lock(&p->lock);
	while (!p->ending && e != ETIMEDOUT)
		e = pthread_cond_timedwait(&p->wake, &p->lock, &until);
	ending = p->ending;
	pthread_mutex_unlock(&p->lock);
	return ending;
}

/* Hands over what was read, and the CPU time since `began`. */
static void poller_hand_over(struct poller *p, uint64_t began)
{
	uint64_t used = now_ns(CLOCK_THREAD_CPUTIME_ID) - began;

	p->rest_until_ns = now_ns(CLOCK_MONOTONIC) + REST_FACTOR * used;
	pthread_mutex_lock(&p->lock);
	if (p->packed.failed || p->ready.len + p->packed.len > STREAM_POLLS_MAX ||
	    !buf_reserve(&p->ready, p->packed.len))
		p->dropped++;
	else
		buf_append(&p->ready, p->packed.data, p->packed.len);
	p->ready.failed = false;
	p->cpu_ns += used;
	pthread_mutex_unlock(&p->lock);
	buf_clear(&p->packed);
}

/* Reads a source, or its next slice. True: there are more. */
static bool poller_read(struct poller *p, struct polled_source *s)
{
	uint64_t began = now_ns(CLOCK_THREAD_CPUTIME_ID);
	int r = poll_files_read(&s->files, &p->text, &p->packed);

	p->packed.failed |= r < 0;
	poller_hand_over(p, began);
	return r > 0;
}

static void source_set_next(struct polled_source *s)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), late;

	s->next_ns += s->interval_ns;
	if (s->next_ns > now)
		return;
	late = (now - s->next_ns) / s->interval_ns + 1;
	s->skipped += late;
	s->next_ns += late * s->interval_ns;
}

static uint64_t poller_next(const struct poller *p)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < p->count; i++)
		next = MIN(next, p->sources[i].next_ns);
	return MAX(next, p->rest_until_ns);
}

static void *poller_main(void *userdata)
{
	struct poller *p = userdata;

	prctl(PR_SET_NAME, "traced-poll");
	/* The recorder's priority is for its rings. On Linux this is the thread's alone. */
	setpriority(PRIO_PROCESS, 0, 0);
	while (!poller_wait(p, poller_next(p))) {
		uint64_t now = now_ns(CLOCK_MONOTONIC);

		for (size_t i = 0; i < p->count; i++) {
			if (p->sources[i].next_ns > now)
				continue;
			/* Between two slices the others have their turn. */
			if (!poller_read(p, &p->sources[i]))
				source_set_next(&p->sources[i]);
		}
	}
	for (size_t i = 0; i < p->count; i++)
		if (source_is_quick(p->sources[i].files.source))
			poller_read(p, &p->sources[i]);
	return NULL;
}

static int poller_open(struct poller *p, const struct poll_plan *plan,
		       const struct poll_where *where, struct capture_report *report,
		       struct error *err)
{
	_cleanup_error_ struct error first = ERROR_INIT;

	for (unsigned source = 1; source < POLL_SOURCES; source++) {
		_cleanup_error_ struct error why = ERROR_INIT;
		struct polled_source *s = &p->sources[p->count];

		if (!plan->interval_ns[source])
			continue;
		if (poll_files_open(&s->files, source, where, &why) == 0) {
			s->interval_ns = plan->interval_ns[source];
			p->count++;
			continue;
		}
		report_warn(report, "%s is not polled: %s", poll_source_name(source), why.message);
		if (!first.code)
			error_move(&first, &why);
	}
	if (p->count)
		return 0;
	error_move(err, &first);
	error_prefix(err, "nothing can be polled");
	return error_hint(err, "this kernel or machine does not have it");
}

int poller_new(struct poller **ret, const struct poll_plan *plan, const struct poll_where *where,
	       struct capture_report *report, struct error *err)
{
	_cleanup_(poller_freep) struct poller *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;
	int r;

	if (!p)
		return error_errno(err, -ENOMEM, "polling");
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &attr);
	pthread_condattr_destroy(&attr);
	r = poller_open(p, plan, where, report, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(p);
	return 0;
}

static void poller_end_thread(struct poller *p)
{
	if (!p->runs)
		return;
	pthread_mutex_lock(&p->lock);
	p->ending = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	p->runs = false;
}

struct poller *poller_free(struct poller *p)
{
	if (!p)
		return NULL;
	poller_end_thread(p);
	for (size_t i = 0; i < p->count; i++)
		poll_files_close(&p->sources[i].files);
	buf_deinit(&p->text);
	buf_deinit(&p->packed);
	buf_deinit(&p->ready);
	buf_deinit(&p->moving);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
	return NULL;
}

int poller_start(struct poller *p)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	int r;

	for (size_t i = 0; i < p->count; i++)
		p->sources[i].next_ns = now;
	r = thread_begin(&p->thread, STACK_BYTES, poller_main, p);
	p->runs = r == 0;
	return r;
}

int poller_take(struct poller *p, struct stream_writer *w, uint64_t *ret_cpu_ns)
{
	struct buf empty = p->moving;
	int r;

	*ret_cpu_ns = 0;
	if (pthread_mutex_trylock(&p->lock))
		return 0;
	*ret_cpu_ns = p->cpu_ns;
	p->cpu_ns = 0;
	if (p->ready.len) {
		p->moving = p->ready;
		p->ready = empty;
	}
	pthread_mutex_unlock(&p->lock);
	if (!p->moving.len)
		return 0;
	r = stream_write(w, CHUNK_POLLS, p->moving.data, p->moving.len);
	buf_clear(&p->moving);
	return r;
}

void poller_stop(struct poller *p, struct capture_report *report)
{
	poller_end_thread(p);
	for (size_t i = 0; i < p->count; i++) {
		const struct polled_source *s = &p->sources[i];

		if (s->skipped)
			report_warn(report,
				    "%" PRIu64 " reading%s of %s %s skipped: they take longer "
				    "than the interval allows",
				    s->skipped, plural_s(s->skipped),
				    poll_source_name(s->files.source),
				    plural(s->skipped, "was", "were"));
		if (s->files.too_many)
			report_warn_missing(report,
					    "there are more than %d processes: the memory of the "
					    "others is missing",
					    POLL_PROCESSES_MAX);
	}
	if (p->dropped)
		report_warn_missing(report,
				    "%" PRIu64 " reading%s of polled files %s missing: the "
				    "recorder was busy, or memory short",
				    p->dropped, plural_s(p->dropped),
				    plural(p->dropped, "is", "are"));
}
